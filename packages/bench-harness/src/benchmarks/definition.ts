import type { Report, Table } from '@roofline/reports';
import type { z } from 'zod';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';

/** What a cell may know besides its own parameters. */
export interface CellContext<Settings extends JsonObject> {
  readonly settings: Settings;
  /** The device to measure on, resolved: `cpu`, `cuda:0`. */
  readonly deviceLabel: string;
  /** Tells the progress display; `done` of `total` steps. Throws when nobody listens any more. */
  progress(done: number, total: number, message?: string): void;
}

/** Work that runs in a process of its own. */
export interface CellTask<Cell extends JsonObject, Settings extends JsonObject, Result extends JsonObject> {
  readonly name: string;
  /** Runs in the cell's process. A throw becomes a row that says so. */
  measure(cell: Cell, context: CellContext<Settings>): Result | Promise<Result>;
}

/**
 * A benchmark: its parameters with their sweeps, the thing to time, and how its records are told. `Settings`
 * are the parameters that all cells of one results folder share; `Cell` holds those that are swept.
 */
export interface Benchmark<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
> extends CellTask<Cell, Settings, Result> {
  readonly title: string;
  readonly parameters: z.ZodType<Parameters>;
  settings(parameters: Parameters): Settings;
  /** The cells of the sweep in a sensible order: cheap ones first. */
  expand(parameters: Parameters): readonly Cell[];
  /** One short line for the progress display. */
  describe(cell: Cell): string;
  /** The samples of a measured cell that `roofline compare` contrasts. */
  samplesMs(record: CellRecord): readonly number[];
  /** The peak memory of a measured cell that it contrasts; null, as without the function, where there is none. */
  peakBytes?(record: CellRecord): number | null;
  /** The table that the command prints, one row a record; its rows are also the command's `--json` output. */
  toTable(records: readonly CellRecord[]): Table;
  toReport(records: readonly CellRecord[]): Report;
}

/** Checks the types of a benchmark; the runner, the records and the reports take it from here. */
export function defineBenchmark<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
>(definition: Benchmark<Parameters, Cell, Settings, Result>): Benchmark<Parameters, Cell, Settings, Result> {
  return definition;
}
