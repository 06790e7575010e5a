/** What a value is, and so how it is written. */
export type ColumnKind =
  /** Words, or a number that is a name (a size, a seed). */
  | 'text'
  /** A number in `unit`. */
  | 'number'
  /** A factor: 0.58 is written `0.58×`. */
  | 'ratio'
  /** A fraction of one: 0.58 is written `58.0 %`. */
  | 'percent'
  /** Bytes: 1073741824 is written `1.00 GiB`. */
  | 'bytes'
  /** Milliseconds: 0.00123 is written `1.23 µs`. */
  | 'duration'
  /** A `RowStatus`. */
  | 'status';

/** What one column of a table holds, and how it is written. */
export interface Column {
  /** The property of each row that holds the value. */
  key: string;
  label: string;
  /**
   * For `number`, the unit the values are in. For `bytes` and `duration`, whose values are always bytes and
   * milliseconds, the unit to show the whole column in; without it that of the median, or a smaller one where the
   * smallest cell would need an exponent.
   */
  unit?: string;
  /** Columns of bytes, or of durations, of the same group take their unit together, so that a row compares across them. */
  unitGroup?: string;
  kind: ColumnKind;
  /** Significant digits; the digits before the decimal point are never rounded away. */
  digits?: number;
  /** Default: left for `text` and `status`, right for the rest. */
  align?: 'left' | 'right' | 'center';
  /** What the column means: the tooltip of its heading in HTML. */
  description?: string;
  /** The property that holds the standard deviation, in the same unit: the cell is written `12.3 ± 0.4`. */
  uncertaintyKey?: string;
  /** `strong` is set in bold; `roof` draws a `percent` as a small bar in HTML. */
  emphasis?: 'strong' | 'roof';
  /** Of a text that a terminal has no room for: broken into lines, the default, or shortened in the middle, as names are. */
  overflow?: 'wrap' | 'shorten';
  /** The first to be left out where a terminal has no room for all columns. */
  detail?: boolean;
  /**
   * The key of another column that this one qualifies, as an interval does a ratio: where a terminal has no room for all
   * columns, it shows both of them or neither.
   */
  qualifies?: string;
  /**
   * With `emphasis: 'roof'`: how far repeated measurements of the roof lie apart, as a fraction. A share so near to 1 is
   * written `at the roof`.
   */
  spread?: number;
}

/** A value in a table, as it was measured: formats are the column's affair. */
export type Cell = string | number | null | undefined;

/** How the measurement of a row ended. */
export type RowStatus = 'ok' | 'out-of-memory' | 'timeout' | 'failed' | 'interrupted' | 'not-available';

/** One row: values by the keys of the columns. */
export interface Row {
  [key: string]: Cell;
  /** How the measurement ended; a row without a status is `ok`. */
  status?: RowStatus;
  /** Why it ended so. */
  error?: string;
}

/** A table: columns that say what values are, and rows of raw values. */
export interface Table {
  kind: 'table';
  /** Unique in its report: the anchor in HTML, the label in LaTeX and Typst, the name of downloaded files. */
  id: string;
  title: string;
  caption?: string;
  columns: Column[];
  rows: Row[];
}

/** What runs along one side of a plot. */
export interface Axis {
  label: string;
  unit?: string;
  /** Default: `linear`, and of an x axis with places that are text `category`. */
  scale?: 'linear' | 'log' | 'category';
}

/** One measured point of a plot. */
export interface Point {
  x: number | string;
  /** Null where nothing could be measured: a gap, in which `note` is written. */
  y: number | null;
  /** The ends of the error bar. */
  low?: number;
  high?: number;
  /** Shown in the tooltip; for a point without `y`, in the plot itself. */
  note?: string;
}

/** Points that share a name, a colour and a shape. */
export interface Series {
  name: string;
  points: Point[];
}

/** Points of one or several series on two axes. */
export interface Plot {
  kind: 'plot';
  /** Unique in its report. */
  id: string;
  title: string;
  caption?: string;
  x: Axis;
  y: Axis;
  /** Default `line`. `bar` takes its x as categories, whatever the scale, and a linear y: a bar on a logarithm has no length to compare. */
  marks?: 'line' | 'bar' | 'area' | 'dot';
  /** For `bar` on a linear axis: the bars of one category are stacked, the first series lowest. */
  stacked?: boolean;
  series: Series[];
  /** Levels to compare with, drawn across the plot: a ceiling, a peer. */
  references?: { label: string; y: number }[];
}

/** Work of one kind: a kernel, an op, a phase of a step. */
export interface RooflinePoint {
  name: string;
  /** Points of one category share a colour and a shape: the phase, say. */
  category?: string;
  /** Floating-point operations and bytes moved in `durationMs` milliseconds; all three above 0. */
  flops: number;
  bytes: number;
  durationMs: number;
  /** The label of the ceiling for this work; without it the highest. */
  ceiling?: string;
  /** Shown in the tooltip. */
  note?: string;
}

/**
 * FLOP/s over arithmetic intensity, both logarithmic, under the ceilings of the device: work on the slope waits for
 * memory, work under a level line for arithmetic (Williams, Waterman and Patterson, "Roofline", 2009). A point's area
 * follows the time that it stands for.
 */
export interface RooflinePlot {
  kind: 'roofline';
  /** Unique in its report. */
  id: string;
  title: string;
  caption?: string;
  /** Level lines: what arithmetic reaches at its best. At least one. */
  ceilings: { label: string; flopsPerSecond: number }[];
  /** The slope: what memory reaches at its best. */
  bandwidth: { label: string; bytesPerSecond: number };
  points: RooflinePoint[];
  /** How far repeated measurements of the ceilings lie apart, as a fraction: work so near is at the roof. Default 0. */
  spread?: number;
}

/** One case of a comparison. */
export interface RatioRow {
  /** What names it, one for each of the plot's `heads`. */
  names: string[];
  /** The values, above 0; null where there is none. */
  ours: number | null;
  theirs: number | null;
  /** The ends of the ratio's interval. */
  low?: number;
  high?: number;
  /** Why there is no ratio: written in its place. */
  note?: string;
}

/**
 * How much of another party's time, memory or else ours takes, case by case: rows with a dot on an axis of ratios, joined to the
 * line where both are level, so that small cases are seen as well as large ones.
 */
export interface RatioPlot {
  kind: 'ratios';
  /** Unique in its report. */
  id: string;
  title: string;
  caption?: string;
  /** Who is compared, and with whom. */
  ours: string;
  theirs: string;
  /** What the values are: durations in milliseconds, bytes, or numbers of something. Less is better. */
  value: 'duration' | 'bytes' | 'number';
  /** What the names of a row are: `Model`, `Context`. */
  heads: string[];
  rows: RatioRow[];
}

/** What is drawn as an image: on axes, under a roof, or as ratios. */
export type Drawing = Plot | RooflinePlot | RatioPlot;

/** What has an image: a drawing, or something over time. */
export type Picture = Drawing | Timeline | AllocationPlot;

/** One thing that took time on a track: a kernel, a range, a node. */
export interface Slice {
  name: string;
  /** Microseconds since the timeline's zero. */
  startUs: number;
  durationUs: number;
  /** The line within its track, 0 on top; without it a slice takes the first line that is free at its start. */
  depth?: number;
  /** Slices of one category share a colour; without it those of one name do. */
  category?: string;
}

/** A line of a timeline, with its slices: a stream, a thread, the ranges. */
export interface Track {
  name: string;
  slices: Slice[];
}

/** A value over time: it holds from its point to the next one. */
export interface Counter {
  name: string;
  /** `bytes` is written as KiB, MiB and so on; any other unit after the number. */
  unit: string;
  points: [timeUs: number, value: number][];
}

/** What ran when: flame-like and zoomable in HTML, a table of the names that took most time elsewhere. */
export interface Timeline {
  kind: 'timeline';
  /** Unique in its report. */
  id: string;
  title: string;
  caption?: string;
  tracks: Track[];
  counters?: Counter[];
}

/** A piece of memory from its allocation to its release. */
export interface Allocation {
  /** What it is for: the op, or the range that made it. */
  label: string;
  /** Allocations of one category share a colour; without it those of one label do. */
  category?: string;
  bytes: number;
  /** Microseconds since the plot's zero. */
  startUs: number;
  /** Null for what was still held at the end. */
  endUs: number | null;
  /** The calls that led to it, the innermost first. */
  stack?: string[];
}

/** Memory by what holds it: stacked over time in HTML, a table of what was live at the peak elsewhere. */
export interface AllocationPlot {
  kind: 'allocations';
  /** Unique in its report. */
  id: string;
  title: string;
  caption?: string;
  allocations: Allocation[];
  /** Bytes that the allocator held of the device; each holds from its point to the next one. */
  reserved?: [timeUs: number, bytes: number][];
}

/** A remark next to tables and plots. */
export interface Note {
  kind: 'note';
  text: string;
  /** Default `info`. */
  tone?: 'info' | 'warning';
}

/** A part of a section. */
export type Block = Table | Drawing | Timeline | AllocationPlot | Note;

/** Prose may hold `code`, **bold** and [links](https://example.org); HTML is shown as written. */
export interface Section {
  /** Unique in its report: the anchor in HTML. */
  id: string;
  title: string;
  /** 2: a part of the section of level 1 before it, under which the navigation lists it. Default 1. */
  level?: 1 | 2;
  /** Shown when asked for: settings, and what else only some readers need. */
  folded?: boolean;
  text?: string[];
  blocks: Block[];
}

/** A report: its findings, its sections, and where it was measured. */
export interface Report {
  title: string;
  subtitle?: string;
  /** ISO 8601. */
  createdAt: string;
  /** The findings, one sentence each, the most important first: HTML shows three, and the others when asked for. */
  summary: string[];
  /** The chart that shows the findings at a glance, below them. */
  chart?: Drawing;
  environment: { label: string; value: string }[];
  sections: Section[];
}

/** A report, or one of its parts, cannot be drawn as it is. */
export class ReportError extends Error {
  override name = 'ReportError';
}
