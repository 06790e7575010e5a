import { z } from 'zod';
import type {
  AllocationPlot,
  Axis,
  ColumnKind,
  Drawing,
  Picture,
  Plot,
  RatioPlot,
  Report,
  RooflinePlot,
  RowStatus,
  Table,
  Timeline,
} from '../model.ts';
import { STATUS_MARKERS } from '../table/cell-text.ts';
import { unitNames } from '../table/units.ts';
import { flag, length, listOf, number, oneOf, partsOf, requireThat, text } from './checks.ts';

const kinds = ['text', 'number', 'ratio', 'percent', 'bytes', 'duration', 'status'] satisfies ColumnKind[];
const statuses = ['ok', ...(Object.keys(STATUS_MARKERS) as RowStatus[])] as const;
const scales = ['linear', 'log', 'category'] as const satisfies Axis['scale'][];

/** As `toExponential` takes them, plus the one before the point. */
export const digits = z
  .custom<number>(
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 100,
    'a whole number from 1 to 100',
  )
  .optional();

const formParts = { kind: oneOf(kinds), unit: text.optional(), digits };

function checkUnit({ kind, unit }: { kind: ColumnKind; unit?: string }, context: z.RefinementCtx): void {
  const names = unitNames(kind);
  if (unit === undefined || names === undefined || names.includes(unit)) return;
  const message = `a unit of ${kind} (${names.join(', ')})`;
  context.addIssue({ code: 'custom', path: ['unit'], message });
}

/** The properties of a column that say how its numbers are written. */
export const numberForm = partsOf(formParts).superRefine(checkUnit);

const fraction = z
  .custom<number>((part) => typeof part === 'number' && part >= 0 && part <= 1, 'a fraction from 0 to 1')
  .optional();

const column = partsOf({
  key: text,
  label: text,
  align: oneOf(['left', 'right', 'center']).optional(),
  description: text.optional(),
  uncertaintyKey: text.optional(),
  unitGroup: text.optional(),
  emphasis: oneOf(['strong', 'roof']).optional(),
  overflow: oneOf(['wrap', 'shorten']).optional(),
  detail: flag.optional(),
  qualifies: text.optional(),
  spread: fraction,
  ...formParts,
}).superRefine(checkUnit);

const cell = z.custom<string | number | null | undefined>(
  (value) => value === null || value === undefined || typeof value === 'string' || typeof value === 'number',
  'text, a number or null',
);
const row = z
  .object({ status: oneOf(statuses).optional(), error: text.optional() }, 'an object')
  .catchall(cell.optional());

const heading = { id: text, title: text, caption: text.optional() };
const table = partsOf({
  kind: oneOf(['table']),
  ...heading,
  columns: listOf(column),
  rows: listOf(row),
});

const axis = partsOf({ label: text, unit: text.optional(), scale: oneOf(scales).optional() });
const numberOrNull = z.custom<number | null>(
  (value) => value === null || typeof value === 'number',
  'a number or null',
);
const lengthOrNull = z.custom<number | null>(
  (value) => value === null || length.safeParse(value).success,
  'a finite number above 0, or null',
);
const point = partsOf({
  x: z.custom<number | string>((x) => typeof x === 'number' || typeof x === 'string', 'a number or text'),
  y: numberOrNull,
  low: number.optional(),
  high: number.optional(),
  note: text.optional(),
});
const plot = partsOf({
  kind: oneOf(['plot']),
  ...heading,
  x: axis,
  y: axis,
  marks: oneOf(['line', 'bar', 'area', 'dot']).optional(),
  stacked: flag.optional(),
  series: listOf(partsOf({ name: text, points: listOf(point) })),
  references: listOf(partsOf({ label: text, y: number })).optional(),
});

/** With a ceiling at least, and points that name none but those given. */
const roofline = partsOf({
  kind: oneOf(['roofline']),
  ...heading,
  ceilings: listOf(partsOf({ label: text, flopsPerSecond: length })).min(1, 'a list of at least one ceiling'),
  bandwidth: partsOf({ label: text, bytesPerSecond: length }),
  points: listOf(
    partsOf({
      name: text,
      category: text.optional(),
      flops: length,
      bytes: length,
      durationMs: length,
      ceiling: text.optional(),
      note: text.optional(),
    }),
  ),
  spread: fraction,
}).superRefine(({ ceilings, points }, context) => {
  const labels = ceilings.map(({ label }) => label);
  const stranger = points.findIndex(({ ceiling }) => ceiling !== undefined && !labels.includes(ceiling));
  const message = labels.map((label) => `'${label}'`).join(' or ');
  if (stranger >= 0) context.addIssue({ code: 'custom', path: ['points', stranger, 'ceiling'], message });
});

/** At least one row, each with as many names as there are heads. */
const ratios = partsOf({
  kind: oneOf(['ratios']),
  ...heading,
  ours: text,
  theirs: text,
  value: oneOf(['duration', 'bytes', 'number']),
  heads: listOf(text).min(1, 'a list of at least one head'),
  rows: listOf(
    partsOf({
      names: listOf(text),
      ours: lengthOrNull,
      theirs: lengthOrNull,
      low: length.optional(),
      high: length.optional(),
      note: text.optional(),
    }),
  ).min(1, 'a list of at least one row'),
}).superRefine(({ heads, rows }, context) => {
  const odd = rows.findIndex(({ names }) => names.length !== heads.length);
  const message = `a list of ${heads.length}, as many as heads`;
  if (odd >= 0) context.addIssue({ code: 'custom', path: ['rows', odd, 'names'], message });
});

/** A time in microseconds, and the value from then on. */
const timed = z.custom<[number, number]>(
  (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((each) => typeof each === 'number'),
  'a pair of numbers',
);
const slice = partsOf({
  name: text,
  startUs: number,
  durationUs: number,
  depth: number.optional(),
  category: text.optional(),
});
const timeline = partsOf({
  kind: oneOf(['timeline']),
  ...heading,
  tracks: listOf(partsOf({ name: text, slices: listOf(slice) })),
  counters: listOf(partsOf({ name: text, unit: text, points: listOf(timed) })).optional(),
});

const allocation = partsOf({
  label: text,
  category: text.optional(),
  bytes: number,
  startUs: number,
  endUs: numberOrNull,
  stack: listOf(text).optional(),
});
const allocations = partsOf({
  kind: oneOf(['allocations']),
  ...heading,
  allocations: listOf(allocation),
  reserved: listOf(timed).optional(),
});

const note = partsOf({ kind: oneOf(['note']), text, tone: oneOf(['info', 'warning']).optional() });

const block = z.discriminatedUnion(
  'kind',
  [table, plot, roofline, ratios, timeline, allocations, note],
  'a block: table, plot, roofline, ratios, timeline, allocations or note',
);

const report = partsOf({
  title: text,
  subtitle: text.optional(),
  createdAt: text,
  summary: listOf(text),
  environment: listOf(partsOf({ label: text, value: text })),
  sections: listOf(
    partsOf({
      id: text,
      title: text,
      level: z.custom<1 | 2>((level) => level === 1 || level === 2, '1 or 2').optional(),
      folded: flag.optional(),
      text: listOf(text).optional(),
      blocks: listOf(block),
    }),
  ),
});

// Each throws a ReportError, which names `owner` and the part, unless the value has the shape of its type. Whether its
// numbers can be drawn is a question to what draws them.

export function checkTable(owner: string, value: Table): void {
  requireThat(owner, 'table', value, table);
}

export function checkPlot(owner: string, value: Plot): void {
  requireThat(owner, 'plot', value, plot);
}

export function checkRoofline(owner: string, value: RooflinePlot): void {
  requireThat(owner, 'roofline', value, roofline);
}

export function checkRatios(owner: string, value: RatioPlot): void {
  requireThat(owner, 'ratios', value, ratios);
}

export function checkTimelineShape(owner: string, value: Timeline): void {
  requireThat(owner, 'timeline', value, timeline);
}

export function checkAllocationsShape(owner: string, value: AllocationPlot): void {
  requireThat(owner, 'allocations', value, allocations);
}

export function checkDrawing(owner: string, value: Drawing): void {
  if (isOf(value, 'roofline')) checkRoofline(owner, value as RooflinePlot);
  else if (isOf(value, 'ratios')) checkRatios(owner, value as RatioPlot);
  else checkPlot(owner, value as Plot);
}

export function checkPicture(owner: string, value: Picture): void {
  if (isOf(value, 'timeline')) checkTimelineShape(owner, value as Timeline);
  else if (isOf(value, 'allocations')) checkAllocationsShape(owner, value as AllocationPlot);
  else checkDrawing(owner, value as Drawing);
}

/** Whether a block has an image, which `renderSvg` and `renderPng` give: all but tables and notes. */
export function isPicture<Other>(block: Picture | Other): block is Picture {
  return isDrawing(block) || isOf(block, 'timeline') || isOf(block, 'allocations');
}

/** Whether a block is an image everywhere: what is over time can be zoomed in HTML. */
export function isDrawing<Other>(block: Drawing | Other): block is Drawing {
  return isOf(block, 'plot') || isOf(block, 'roofline') || isOf(block, 'ratios');
}

export function checkReport(owner: string, value: Report): void {
  requireThat(owner, 'report', value, report);
  if (value.chart !== undefined) checkDrawing(owner, value.chart);
}

/** A report has sections; a table and a plot say what they are. */
export function checkModel(owner: string, value: Report | Table | Drawing): void {
  if (typeof value === 'object' && value !== null && 'sections' in value) checkReport(owner, value);
  else if (isOf(value, 'plot') || isOf(value, 'roofline')) checkDrawing(owner, value as Plot | RooflinePlot);
  else checkTable(owner, value as Table);
}

function isOf(value: unknown, kind: string): boolean {
  return (value as { kind?: unknown } | null | undefined)?.kind === kind;
}
