import type { Block, Picture, Report, Section, Table } from '@roofline/reports';
import type { z } from 'zod';
import type { CompiledAttention } from '../attention/shape.ts';
import type { Parameter, Parameters as DeclaredParameters } from '../parameters/parameter.ts';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import type { ColumnOf } from '../report/declared-table.ts';
import type { Lead } from '../report/lead.ts';
import type { Measured, Measurement, StepCost } from '../report/measurement.ts';
import type { CellTask } from '../runner/cell-task.ts';

/** What the runner needs of a benchmark. */
interface Sweep<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
> extends Partial<CellTask<Cell, Settings, Result>> {
  /** Letters, digits, `_`, `-` and `.`: records, anchors and files have it. */
  readonly name: string;
  readonly title: string;
  readonly parameters: z.ZodType<Parameters>;
  /** What records hold of a cell, as it is read back from them. */
  readonly result: z.ZodType<Result>;
  settings(parameters: Parameters): Settings;
  /** The cells of the sweep in a sensible order: cheap ones first. */
  expand(parameters: Parameters): readonly Cell[];
  /**
   * The flash attention that a cell runs, forward and backward or by one tile; null for none. On a GPU its kernels are compiled
   * before the first cell.
   */
  flashAttention?(cell: Cell, settings: Settings): CompiledAttention | null;
  /**
   * Whether the process of a cell may go on with the next: its `measure` frees what it makes, and is about a process that runs, not
   * about one that starts. Without it each cell has its own. A sweep says whether it makes use of it.
   */
  sharesProcess?(cell: Cell, settings: Settings): boolean;
}

/** The parameters of a cell, each declared; or its schema, for cells of several kinds. */
export type CellDeclaration<Cell> =
  z.ZodType<Cell> | { readonly [K in keyof Cell]: Parameter<z.ZodType<Cell[K]>> };

/** A section of a report: its blocks follow from the measurements, and without any there is no section. */
export interface SectionOf<Cell extends JsonObject, Result> {
  /** Unique in its report. */
  readonly id: string;
  readonly title: string;
  readonly text?: readonly string[] | ((cells: Measurements<Cell, Result>) => readonly string[]);
  readonly blocks: readonly BlocksOf<Cell, Result>[];
}

export type Measurements<Cell extends JsonObject, Result> = readonly Measurement<Cell, Result>[];
/** Tables, plots and notes that follow from the measurements. */
export type BlocksOf<Cell extends JsonObject, Result> = (
  cells: Measurements<Cell, Result>,
) => readonly Block[];
/** What was found, one sentence each. */
export type FindingsOf<Cell extends JsonObject, Result> = (
  cells: Measurements<Cell, Result>,
) => readonly string[];

/**
 * How records are shown. Each part has a default: a table of parameters, times, their share of the roof, memory and
 * `columns`; findings about the times; and a section with that table and a plot of the times.
 */
interface Presentation<Cell extends JsonObject, Result> {
  /** What the default table shows besides. */
  readonly columns?: readonly ColumnOf<Measured<Cell, Result>>[];
  /** The table that the command prints. */
  readonly table?: (cells: Measurements<Cell, Result>) => Table;
  /** What the command prints below it. */
  readonly overview?: readonly BlocksOf<Cell, Result>[];
  /**
   * What was asked, in at most 30 characters: records with one answer to it are one part of a report, whatever their settings.
   * Default: the title.
   */
  readonly question?: (cells: Measurements<Cell, Result>) => string;
  /** What a report begins with: a title that says what was found, and the chart that shows it; null for neither. */
  readonly lead?: (cells: Measurements<Cell, Result>) => Lead | null;
  /** The most telling first. How many cells could not be measured is said after them. */
  readonly findings?: readonly FindingsOf<Cell, Result>[];
  /** Of each cell, and so too many for its report: a study writes them as files. */
  readonly pictures?: (cells: Measurements<Cell, Result>) => readonly Picture[];
  /** Several where each cell has one. */
  readonly sections?: readonly (
    SectionOf<Cell, Result> | ((cells: Measurements<Cell, Result>) => readonly Section[])
  )[];
}

/**
 * A benchmark: its parameters with their sweeps, the thing to time, what it costs, and how its records are shown.
 * `Settings` are the parameters that all cells of one results folder share; `Cell` holds those that are swept.
 */
export interface BenchmarkDefinition<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
>
  extends Sweep<Parameters, Cell, Settings, Result>, Presentation<Cell, Result> {
  readonly cell: CellDeclaration<Cell>;
  /** Of cells of several kinds, whose `cell` is a schema: how their parameters are said. */
  readonly cellParameters?: DeclaredParameters;
  /** The settings, declared, for reports to say them by their titles; others are said by their keys. */
  readonly settingParameters?: DeclaredParameters;
  /** One short line for a cell; without it the words of its parameters. */
  describe?(cell: Cell): string;
  /** The samples that are timed: tables summarize and `roofline compare` contrasts them. May be none. */
  samplesMs(result: Result, cell: Cell): readonly number[];
  /** The peak memory that `roofline compare` contrasts; null, as without the function, where there is none. */
  peakBytes?(result: Result, cell: Cell): number | null;
  /** Null where nothing is known of a cell's work. */
  cost?(result: Result, cell: Cell): StepCost | null;
}

/** A benchmark as the runner, the records and the reports take it. */
export interface Benchmark<
  Parameters,
  Cell extends JsonObject,
  Settings extends JsonObject,
  Result extends JsonObject,
> extends Sweep<Parameters, Cell, Settings, Result> {
  /** One short line for the progress display. */
  describe(cell: Cell): string;
  /** Those that its cells declare. */
  readonly cellParameters: DeclaredParameters;
  /** The cell of a record, with the defaults of what older records lack. */
  cellOf(record: CellRecord): Cell;
  /** The samples of a measured cell that `roofline compare` contrasts. */
  samplesMs(record: CellRecord): readonly number[];
  /** The peak memory of a measured cell that it contrasts; null where there is none. */
  peakBytes(record: CellRecord): number | null;
  /** The table that the command prints, one row a record; its rows are also the command's `--json` output. */
  toTable(records: readonly CellRecord[]): Table;
  /** What the command prints below it, and then what was found. */
  toOverview(records: readonly CellRecord[]): {
    readonly tables: readonly Table[];
    /** Warnings, which go to standard error under --json too. */
    readonly notes: readonly string[];
    readonly findings: readonly string[];
  };
  /** What the records of one sweep were asked. */
  question(records: readonly CellRecord[]): string;
  toReport(records: readonly CellRecord[]): Report;
  /** Pictures that its report has no room for; none of most benchmarks. */
  toPictures(records: readonly CellRecord[]): readonly Picture[];
}

/** A benchmark of any parameters and results, as the registry holds it. */
export type AnyBenchmark = Benchmark<unknown, JsonObject, JsonObject, JsonObject>;
