import type { Column, Report, Table } from '@roofline/reports';
import type { z } from 'zod';
import type { AttentionShape } from '../attention/shape.ts';
import type { BenchmarkDType, PhaseWork } from '../measuring/ceilings.ts';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';

/** What a cell may know besides its own parameters. */
export interface CellContext<Settings extends JsonObject> {
  readonly settings: Settings;
  /** The device to measure on, resolved: `cpu`, `cuda:0`. */
  readonly deviceLabel: string;
  /** Updates the progress display; `done` of `total` steps. Throws when no one listens any more. */
  progress(done: number, total: number, message?: string): void;
}

/** Work that runs in a process of its own. */
export interface CellTask<Cell extends JsonObject, Settings extends JsonObject, Result extends JsonObject> {
  /** Of a benchmark letters, digits, `_`, `-` and `.`: its records, anchors and files have it. */
  readonly name: string;
  /** Runs in the cell's process. A throw becomes a row that says so. */
  measure(cell: Cell, context: CellContext<Settings>): Result | Promise<Result>;
}

/** A task of any parameters and results. */
export type AnyTask = CellTask<JsonObject, JsonObject, JsonObject>;

/** What the runner needs of a benchmark, and what is the same in its definition and in the finished benchmark. */
interface Sweep<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
> extends CellTask<Cell, Settings, Result> {
  readonly title: string;
  readonly parameters: z.ZodType<Parameters>;
  /** What records hold of a cell, as it is read back from them. */
  readonly result: z.ZodType<Result>;
  settings(parameters: Parameters): Settings;
  /** The cells of the sweep in a sensible order: cheap ones first. */
  expand(parameters: Parameters): readonly Cell[];
  /**
   * The causal flash attention that a cell runs, forward and backward; null for none. On a GPU its kernels are compiled
   * before the first cell.
   */
  flashAttention?(cell: Cell, settings: Settings): AttentionShape | null;
  /** One short line for the progress display. */
  describe(cell: Cell): string;
}

/** A column of a benchmark's table, and how its value follows from what was measured. */
export interface ResultColumn<Cell, Result> extends Column {
  value(result: Result, cell: Cell): number | string | null;
  /** The standard deviation of the value, in its unit. */
  deviation?(result: Result, cell: Cell): number | null;
}

/** The work of one step of a cell, which the measured ceilings turn into the least time it could take. */
export interface StepCost {
  /** One after the other; their floors add up. */
  readonly phases: readonly PhaseWork[];
  readonly dtype: BenchmarkDType;
}

/**
 * A benchmark: its parameters with their sweeps, the thing to time, what it costs, and how its records are reported.
 * `Settings` are the parameters that all cells of one results folder share; `Cell` holds those that are swept.
 * Without `toTable` and `toReport` both follow from the parameters, `samplesMs`, `cost` and `columns`.
 */
export interface BenchmarkDefinition<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
> extends Sweep<Parameters, Cell, Settings, Result> {
  /** A cell's parameters, as they are read back from records. */
  readonly cell: z.ZodType<Cell>;
  /** The samples that `roofline compare` contrasts, and that the default table and report show; may be none. */
  samplesMs(result: Result, cell: Cell): readonly number[];
  /** The peak memory that `roofline compare` contrasts; null, as without the function, where there is none. */
  peakBytes?(result: Result, cell: Cell): number | null;
  /** Null where nothing is known of a cell's work. */
  cost?(result: Result, cell: Cell): StepCost | null;
  /** What the default table shows besides the parameters and the times. */
  readonly columns?: readonly ResultColumn<Cell, Result>[];
  toTable?(records: readonly CellRecord[]): Table;
  toReport?(records: readonly CellRecord[]): Report;
}

/** A benchmark as the runner, the records and the reports take it. */
export interface Benchmark<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
> extends Sweep<Parameters, Cell, Settings, Result> {
  /** The cell of a record, with the defaults of what older records lack. */
  cellOf(record: CellRecord): Cell;
  /** The samples of a measured cell that `roofline compare` contrasts. */
  samplesMs(record: CellRecord): readonly number[];
  /** The peak memory of a measured cell that it contrasts; null where there is none. */
  peakBytes(record: CellRecord): number | null;
  /** The table that the command prints, one row a record; its rows are also the command's `--json` output. */
  toTable(records: readonly CellRecord[]): Table;
  toReport(records: readonly CellRecord[]): Report;
}

/** A benchmark of any parameters and results, as the registry holds it. */
export type AnyBenchmark = Benchmark<unknown, JsonObject, JsonObject, JsonObject>;
