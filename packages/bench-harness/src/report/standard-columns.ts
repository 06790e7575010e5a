import type { Column, Row } from '@roofline/reports';
import { formatInterval, type RatioEstimate } from '../measuring/statistics.ts';
import type { JsonObject } from '../records/json.ts';
import type { ColumnOf } from './declared-table.ts';
import type { Measurement } from './measurement.ts';

/** What columns of times read of a row. */
type Timed = Pick<Measurement<JsonObject, unknown>, 'time' | 'floorMs' | 'roofShare' | 'peakBytes'>;

/** Mean and deviation of what was timed, and its median, which is what is compared. */
export const timeColumns = (label: string, description: string): readonly ColumnOf<Timed>[] => [
  {
    ...{ key: 'meanMs', label, unit: 'ms', kind: 'duration', description },
    ...{ qualifies: 'medianMs', uncertaintyKey: 'stdMs' },
    shown: 'filled',
    value: ({ time }) => time?.mean,
    // One sample has no spread.
    deviation: ({ time }) => (time && time.count > 1 ? time.std : null),
  },
  { ...medianColumn, shown: 'filled' },
];

export const medianColumn: ColumnOf<Timed> = {
  ...{ key: 'medianMs', label: 'Median', unit: 'ms', kind: 'duration', emphasis: 'strong' },
  value: ({ time }) => time?.median,
};

/** A time compared with the ceilings. */
export const roofColumns: readonly ColumnOf<Timed>[] = [
  {
    ...{ key: 'floorMs', label: 'Floor', unit: 'ms', kind: 'duration', detail: true },
    description: 'The least time that the measured ceilings of this device allow for this work.',
    shown: 'filled',
    value: ({ floorMs }) => floorMs,
  },
  {
    ...{ key: 'roofShare', label: 'Of the roof', kind: 'percent', emphasis: 'roof' },
    description: 'Floor over median: at 100 % the work runs as fast as the measured ceilings allow.',
    shown: 'filled',
    value: ({ roofShare }) => roofShare,
  },
];

export const peakColumn: ColumnOf<Timed> = {
  ...{ key: 'peakBytes', label: 'Peak memory', kind: 'bytes' },
  description: 'Most bytes held by tensors at once.',
  shown: 'filled',
  value: ({ peakBytes }) => peakBytes ?? undefined,
};

/** What is reached, in TFLOP/s, or in GFLOP/s where no row reaches one of them. */
export function achievedColumns<Item>(
  flopsPerSecond: (item: Item) => number | null | undefined,
  description: string,
): ColumnOf<Item>[] {
  const units = [
    ['teraflopsPerSecond', 'TFLOP/s', 1e12],
    ['gigaflopsPerSecond', 'GFLOP/s', 1e9],
  ] as const;
  const inTera = (items: readonly Item[]) => items.some((item) => (flopsPerSecond(item) ?? 0) >= 1e12);
  return units.map(([key, unit, scale]) => ({
    ...{ key, label: 'Achieved', unit, kind: 'number', digits: 3, detail: true, description },
    shown: (items) => inTera(items) === (scale === 1e12),
    value: (item) => {
      const reached = flopsPerSecond(item);
      return reached === null || reached === undefined ? reached : reached / scale;
    },
  }));
}

type Value<Item> = ColumnOf<Item>['value'];
type More<Item> = Partial<Omit<ColumnOf<Item>, 'key' | 'label' | 'value'>>;

/** Makes columns of one kind: key, label, value if that is not the item's member of that key, and what else there is to say. */
interface MakeColumn {
  <Item>(key: string, label: string, value: Value<Item>, more?: More<Item>): ColumnOf<Item>;
  <Item>(key: keyof Item & string, label: string, more?: More<Item>): ColumnOf<Item>;
}

function ofKind(kind: Pick<Column, 'kind' | 'unit' | 'align'>): MakeColumn {
  return <Item>(key: string, label: string, read: Value<Item> | More<Item> = {}, more: More<Item> = {}) => {
    const named = { ...kind, key, label };
    if (typeof read === 'function') return { ...named, value: read, ...more };
    return { ...named, value: (item: Item) => (item as Row)[key], ...read };
  };
}

export const column = {
  text: ofKind({ kind: 'text' }),
  /** A number that is a name, or is shown as it was counted. */
  count: ofKind({ kind: 'text', align: 'right' }),
  number: ofKind({ kind: 'number' }),
  ratio: ofKind({ kind: 'ratio' }),
  percent: ofKind({ kind: 'percent' }),
  bytes: ofKind({ kind: 'bytes' }),
  /** Milliseconds, shown in them. */
  ms: ofKind({ kind: 'duration', unit: 'ms' }),
};

/** A ratio, and next to it its interval. */
export function ratioColumns<Item>(
  key: string,
  label: string,
  of: (item: Item) => RatioEstimate | null | undefined,
  { description, interval }: { readonly description: string; readonly interval?: string },
): ColumnOf<Item>[] {
  const shown = 'filled';
  const intervalOf = (item: Item) => {
    const ratio = of(item);
    return ratio && formatInterval(ratio);
  };
  return [
    column.ratio(key, label, (item) => of(item)?.ratio, { emphasis: 'strong', shown, description }),
    column.text(`${key}Interval`, '95 % interval', intervalOf, {
      ...{ align: 'right', qualifies: key, shown },
      ...(interval !== undefined && { description: interval }),
    }),
  ];
}
