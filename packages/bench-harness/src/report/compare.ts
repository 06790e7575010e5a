import { formatRatio, type Row, type Table } from '@roofline/reports';
import { benchmarkOf } from '../benchmarks.ts';
import { canonicalJson } from '../json.ts';
import type { CellRecord } from '../records/record.ts';
import { formatInterval, ratioOfMedians, summarize, type RatioEstimate } from '../statistics.ts';

/** The same cell in two sets of records. */
export interface Comparison {
  readonly before: CellRecord;
  readonly after: CellRecord;
  /** Medians in milliseconds, and after over before; null unless both were measured. */
  readonly times: {
    readonly beforeMs: number;
    readonly afterMs: number;
    readonly ratio: RatioEstimate;
  } | null;
}

/** Pairs the cells of equal parameters, whatever their device and settings, in the order of `before`. */
export function compareRecords(before: readonly CellRecord[], after: readonly CellRecord[]): Comparison[] {
  const name = (record: CellRecord) => canonicalJson([record.benchmark, record.parameters]);
  const others = new Map(after.map((record) => [name(record), record]));
  return before.flatMap((record) => {
    const other = others.get(name(record));
    return other ? [{ before: record, after: other, times: compareTimes(record, other) }] : [];
  });
}

function compareTimes(before: CellRecord, after: CellRecord): Comparison['times'] {
  if (before.status !== 'ok' || after.status !== 'ok') return null;
  const [a, b] = [before, after].map((record) => benchmarkOf(record).samplesMs(record));
  if (a!.length === 0 || b!.length === 0) return null;
  return {
    beforeMs: summarize(a!).median,
    afterMs: summarize(b!).median,
    ratio: ratioOfMedians(b!, a!),
  };
}

/**
 * The comparisons whose ratio is above `limit` beyond noise, or whose cell no longer gets measured. A ratio that
 * may as well be 1 is noise, however large.
 */
export function regressions(comparisons: readonly Comparison[], limit: number): Comparison[] {
  return comparisons.filter(
    ({ before, after, times }) =>
      (times !== null && times.ratio.ratio > limit && times.ratio.low > Math.min(1, limit)) ||
      (before.status === 'ok' && after.status !== 'ok'),
  );
}

/** What the comparison comes to, one sentence each; `unpaired` cells are in one of the sets alone. */
export function comparisonSummary(comparisons: readonly Comparison[], unpaired: number): string[] {
  const timed = comparisons.flatMap(({ before, times }) => (times ? [{ before, ...times }] : []));
  const told = (cells: typeof timed) =>
    cells.map(
      ({ before, ratio }) => `${cellName(before)} ${formatRatio(ratio.ratio)} (${formatInterval(ratio)})`,
    );
  const sentence = (verdictWanted: string, cells: typeof timed) =>
    cells.length === 0
      ? []
      : [`${cells.length} of ${timed.length} got ${verdictWanted} beyond noise: ${told(cells).join('; ')}.`];
  const slower = timed
    .filter(({ ratio }) => verdict(ratio) === 'slower')
    .sort((a, b) => b.ratio.ratio - a.ratio.ratio);
  const faster = timed
    .filter(({ ratio }) => verdict(ratio) === 'faster')
    .sort((a, b) => a.ratio.ratio - b.ratio.ratio);
  const lost = comparisons.filter(({ before, after }) => before.status === 'ok' && after.status !== 'ok');
  return [
    ...sentence('slower', slower),
    ...sentence('faster', faster),
    ...(timed.length > 0 && slower.length + faster.length === 0
      ? ['Nothing got slower or faster beyond noise.']
      : []),
    ...lost.map(
      ({ before, after }) => `${cellName(before)} was measured before, and is ${after.status} now.`,
    ),
    ...(unpaired > 0 ? [`${unpaired} cells are in one of the two alone.`] : []),
  ];
}

function cellName({ parameters }: CellRecord): string {
  return Object.values(parameters)
    .filter((value) => typeof value !== 'object')
    .join(' ');
}

export function comparisonTable(comparisons: readonly Comparison[]): Table {
  const names = parameterNames(comparisons);
  return {
    kind: 'table',
    id: 'comparison',
    title: 'After over before',
    columns: [
      ...names.map((name) => ({ key: name, label: capitalize(name), kind: 'text' as const })),
      { key: 'beforeMs', label: 'Before', unit: 'ms', kind: 'duration' },
      { key: 'afterMs', label: 'After', unit: 'ms', kind: 'duration' },
      { key: 'ratio', label: 'Ratio', kind: 'ratio', emphasis: 'strong' },
      { key: 'interval', label: '95 % interval', kind: 'text', align: 'right' },
      { key: 'verdict', label: 'Verdict', kind: 'text' },
    ],
    rows: comparisons.map((comparison) => comparisonRow(comparison, names)),
  };
}

function comparisonRow({ before, after, times }: Comparison, names: readonly string[]): Row {
  const parameters = Object.fromEntries(
    names.map((name) => [name, before.parameters[name] as string | number]),
  );
  if (times === null) {
    const unmeasured = before.status === 'ok' ? after : before;
    return {
      ...parameters,
      status: unmeasured.status,
      verdict:
        before.status === 'ok' && after.status === 'ok'
          ? 'not timed'
          : `${before.status} before, ${after.status} after`,
    };
  }
  const { ratio, low, high } = times.ratio;
  return {
    ...parameters,
    beforeMs: times.beforeMs,
    afterMs: times.afterMs,
    ratio,
    ratioLow: low,
    ratioHigh: high,
    interval: formatInterval(times.ratio),
    verdict: verdict(times.ratio),
  };
}

/** A difference counts when its interval leaves 1 outside. */
function verdict({ low, high }: RatioEstimate): string {
  if (high < 1) return 'faster';
  return low > 1 ? 'slower' : 'no clear difference';
}

/** Parameters that are plain values; nested ones repeat what a name says. */
function parameterNames(comparisons: readonly Comparison[]): string[] {
  const names = comparisons.flatMap(({ before }) =>
    Object.entries(before.parameters).flatMap(([name, value]) => (typeof value === 'object' ? [] : [name])),
  );
  return [...new Set(names)];
}

function capitalize(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
