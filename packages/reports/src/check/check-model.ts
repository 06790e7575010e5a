import type {
  AllocationPlot,
  Axis,
  Column,
  ColumnKind,
  Plot,
  Report,
  RooflinePlot,
  RowStatus,
  Table,
  Timeline,
} from '../model.ts';
import { STATUS_MARKERS } from '../table/cell-text.ts';
import { unitNames } from '../table/units.ts';
import {
  type Check,
  flag,
  isObject,
  length,
  listOf,
  number,
  oneOf,
  optional,
  partsOf,
  requireThat,
  such,
  text,
} from './checks.ts';

const kinds = ['text', 'number', 'ratio', 'percent', 'bytes', 'duration', 'status'] satisfies ColumnKind[];
const statuses = ['ok', ...(Object.keys(STATUS_MARKERS) as RowStatus[])];
const scales = ['linear', 'log', 'category'] satisfies Axis['scale'][];

/** As `toExponential` takes them, plus the one before the point. */
export const digits = optional(
  such(
    'a whole number from 1 to 100',
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 100,
  ),
);

/** The properties of a column that say how its numbers are written. */
export const numberForm: Check = (column) => {
  const fault = numberFormParts(column);
  if (fault !== null) return fault;
  const { kind, unit } = column as Column;
  const names = unitNames(kind);
  if (unit === undefined || names === undefined || names.includes(unit)) return null;
  return { path: '.unit', wanted: `a unit of ${kind} (${names.join(', ')})`, value: unit };
};
const numberFormParts = partsOf({ kind: oneOf(kinds), unit: optional(text), digits });

const fraction = optional(
  such('a fraction from 0 to 1', (part) => typeof part === 'number' && part >= 0 && part <= 1),
);

const columnParts = partsOf({
  key: text,
  label: text,
  align: optional(oneOf(['left', 'right', 'center'])),
  description: optional(text),
  uncertaintyKey: optional(text),
  unitGroup: optional(text),
  emphasis: optional(oneOf(['strong', 'roof'])),
  overflow: optional(oneOf(['wrap', 'shorten'])),
  detail: optional(flag),
  qualifies: optional(text),
  spread: fraction,
});
const column: Check = (value) => columnParts(value) ?? numberForm(value);

const cell = such(
  'text, a number or null',
  (value) => value === null || value === undefined || typeof value === 'string' || typeof value === 'number',
);
const ending = partsOf({ status: optional(oneOf(statuses)), error: optional(text) });
const row: Check = (value) => {
  const fault = ending(value);
  if (fault !== null) return fault;
  for (const [key, each] of Object.entries(value as object)) {
    const wrong = cell(each);
    if (wrong !== null) return { ...wrong, path: `.${key}` };
  }
  return null;
};

const heading = { id: text, title: text, caption: optional(text) };
const table = partsOf({
  kind: oneOf(['table']),
  ...heading,
  columns: listOf(column),
  rows: listOf(row),
});

const axis = partsOf({ label: text, unit: optional(text), scale: oneOf(scales) });
const point = partsOf({
  x: such('a number or text', (x) => typeof x === 'number' || typeof x === 'string'),
  y: such('a number or null', (y) => y === null || typeof y === 'number'),
  low: optional(number),
  high: optional(number),
  note: optional(text),
});
const plot = partsOf({
  kind: oneOf(['plot']),
  ...heading,
  x: axis,
  y: axis,
  marks: oneOf(['line', 'bar', 'area', 'dot']),
  stacked: optional(flag),
  series: listOf(partsOf({ name: text, points: listOf(point) })),
  references: optional(listOf(partsOf({ label: text, y: number }))),
});

const roofline = partsOf({
  kind: oneOf(['roofline']),
  ...heading,
  ceilings: listOf(partsOf({ label: text, flopsPerSecond: length })),
  bandwidth: partsOf({ label: text, bytesPerSecond: length }),
  points: listOf(
    partsOf({
      name: text,
      category: optional(text),
      flops: length,
      bytes: length,
      durationMs: length,
      ceiling: optional(text),
      note: optional(text),
    }),
  ),
  spread: fraction,
});

/** A time in microseconds, and the value from then on. */
const timed = such(
  'a pair of numbers',
  (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((each) => typeof each === 'number'),
);
const slice = partsOf({
  name: text,
  startUs: number,
  durationUs: number,
  depth: optional(number),
  category: optional(text),
});
const timeline = partsOf({
  kind: oneOf(['timeline']),
  ...heading,
  tracks: listOf(partsOf({ name: text, slices: listOf(slice) })),
  counters: optional(listOf(partsOf({ name: text, unit: text, points: listOf(timed) }))),
});

const allocation = partsOf({
  label: text,
  category: optional(text),
  bytes: number,
  startUs: number,
  endUs: such('a number or null', (end) => end === null || typeof end === 'number'),
  stack: optional(listOf(text)),
});
const allocations = partsOf({
  kind: oneOf(['allocations']),
  ...heading,
  allocations: listOf(allocation),
  reserved: optional(listOf(timed)),
});

const note = partsOf({ kind: oneOf(['note']), text, tone: optional(oneOf(['info', 'warning'])) });

const blocks: Readonly<Record<string, Check>> = { table, plot, roofline, timeline, allocations, note };
const kindOfBlock = partsOf({ kind: oneOf(Object.keys(blocks)) });
const block: Check = (value) => kindOfBlock(value) ?? blocks[(value as { kind: string }).kind]!(value);

const report = partsOf({
  title: text,
  subtitle: optional(text),
  createdAt: text,
  summary: listOf(text),
  environment: listOf(partsOf({ label: text, value: text })),
  sections: listOf(partsOf({ id: text, title: text, text: optional(listOf(text)), blocks: listOf(block) })),
});

// Each throws a ReportError, which names `owner` and the part, unless the value has the shape of its type. Whether its
// numbers can be drawn is a question to what draws them.

export function checkTable(owner: string, value: Table): void {
  requireThat(owner, 'table', value, table);
}

export function checkPlot(owner: string, value: Plot): void {
  requireThat(owner, 'plot', value, plot);
}

/**
 * Also that there is a ceiling, and that the points name none but those given.
 *
 * @throws ReportError
 */
export function checkRoofline(owner: string, value: RooflinePlot): void {
  requireThat(owner, 'roofline', value, roofline);
  const labels = value.ceilings.map(({ label }) => label);
  const ceilingsExist = such('a list of at least one ceiling', () => labels.length > 0);
  requireThat(owner, 'roofline.ceilings', value.ceilings, ceilingsExist);
  value.points.forEach(({ ceiling }, index) =>
    requireThat(owner, `roofline.points[${index}].ceiling`, ceiling, optional(oneOf(labels))),
  );
}

/** What is drawn on two axes. */
export function checkDrawing(owner: string, value: Plot | RooflinePlot): void {
  if (isObject(value) && value.kind === 'roofline') checkRoofline(owner, value as RooflinePlot);
  else checkPlot(owner, value as Plot);
}

export function checkTimelineShape(owner: string, value: Timeline): void {
  requireThat(owner, 'timeline', value, timeline);
}

export function checkAllocationsShape(owner: string, value: AllocationPlot): void {
  requireThat(owner, 'allocations', value, allocations);
}

export function checkReport(owner: string, value: Report): void {
  requireThat(owner, 'report', value, report);
  if (value.chart !== undefined) checkDrawing(owner, value.chart);
  for (const { blocks } of value.sections) {
    for (const block of blocks) if (block.kind === 'roofline') checkRoofline(owner, block);
  }
}

/** A report has sections; a table and a plot say what they are. */
export function checkModel(owner: string, value: Report | Table | Plot | RooflinePlot): void {
  if (isObject(value) && 'sections' in value) checkReport(owner, value as Report);
  else if (isObject(value) && (value.kind === 'plot' || value.kind === 'roofline'))
    checkDrawing(owner, value as Plot | RooflinePlot);
  else checkTable(owner, value as Table);
}
