import { z } from 'zod';
import { formatRatio, type Row, type Table } from '@roofline/reports';
import { anyNumber, anyObject, checkArgument } from '../check-argument.ts';
import type { AnyBenchmark } from '../benchmarks/definition.ts';
import type { BenchmarkEntry } from '../benchmarks/entry.ts';
import { benchmarksOf } from '../benchmarks/registry.ts';
import { describeValue } from '../records/describe-value.ts';
import type { Parameters } from '../parameters/parameter.ts';
import { deviceIdentity } from '../records/environment.ts';
import { canonicalJson, type Json } from '../records/json.ts';
import { type CellRecord, checkRecords, recordSchema } from '../records/record.ts';
import {
  formatInterval,
  NO_INTERVAL,
  ratioOfMedians,
  summarize,
  type RatioEstimate,
} from '../measuring/statistics.ts';
import { comparedColumns, comparedValues } from './compared-parameters.ts';
import { statusInWords } from './values-in-words.ts';
import { inWords } from '../parameters/words.ts';

/** The same cell in two sets of records. */
export interface Comparison {
  /** Of the benchmark and the parameters: `e2e: small · context 256`. */
  readonly cell: string;
  readonly before: CellRecord;
  readonly after: CellRecord;
  /** Medians in milliseconds, and after over before; null unless both were timed. */
  readonly times: {
    readonly beforeMs: number;
    readonly afterMs: number;
    readonly ratio: RatioEstimate;
  } | null;
  /** Peak memory after over before, which has no noise; null unless both have one. */
  readonly memoryRatio: number | null;
  /** Those that the benchmark declares. */
  readonly parameters?: Parameters;
}

/**
 * Pairs the cells of equal parameters, whatever their device and settings, in the order of `before`; of several such in
 * `after` the one that has its device and settings too, else the last.
 */
export async function compareRecords(
  before: readonly CellRecord[],
  after: readonly CellRecord[],
  entries?: readonly BenchmarkEntry[],
): Promise<Comparison[]> {
  checkRecords('compareRecords', 'before', before);
  checkRecords('compareRecords', 'after', after);
  const benchmarks = await benchmarksOf(before, entries);
  const name = (record: CellRecord) =>
    canonicalJson([record.benchmark, benchmarks.get(record.benchmark)!.cellOf(record)]);
  const comparable = after.filter(({ benchmark }) => benchmarks.has(benchmark));
  const others = Map.groupBy(comparable, name);
  return before.flatMap((record) => {
    const alike = others.get(name(record)) ?? [];
    const other = alike.find(({ key }) => key === record.key) ?? alike.at(-1);
    return other ? [compareCell(benchmarks.get(record.benchmark)!, record, other)] : [];
  });
}

function cellName(benchmark: AnyBenchmark, record: CellRecord): string {
  return `${benchmark.name}: ${benchmark.describe(benchmark.cellOf(record))}`;
}

function compareCell(benchmark: AnyBenchmark, before: CellRecord, after: CellRecord): Comparison {
  const areMeasured = before.status === 'ok' && after.status === 'ok';
  return {
    cell: cellName(benchmark, before),
    before,
    after,
    parameters: benchmark.cellParameters,
    times: areMeasured ? compareTimes(benchmark, before, after) : null,
    memoryRatio: areMeasured ? compareMemory(benchmark, before, after) : null,
  };
}

function compareTimes(
  { samplesMs }: AnyBenchmark,
  before: CellRecord,
  after: CellRecord,
): Comparison['times'] {
  const [a, b] = [samplesMs(before), samplesMs(after)];
  if (a.length === 0 || b.length === 0) return null;
  return { beforeMs: summarize(a).median, afterMs: summarize(b).median, ratio: ratioOfMedians(b, a) };
}

function compareMemory({ peakBytes }: AnyBenchmark, before: CellRecord, after: CellRecord): number | null {
  const [a, b] = [peakBytes(before), peakBytes(after)];
  return a && b ? b / a : null;
}

/** A cell that got worse by more than is allowed, with what did in words. */
export interface Regression {
  readonly cell: string;
  readonly reason: string;
}

/**
 * The cells whose ratio of times is above `limit` beyond noise, whose peak memory is, or that no longer get measured.
 * A ratio of times that may as well be 1 is noise, however large.
 */
export function regressions(comparisons: readonly Comparison[], limit: number): Regression[] {
  return comparisons.flatMap(({ cell, before, after, times, memoryRatio }) => {
    const isSlower = times !== null && times.ratio.ratio > limit && times.ratio.low > Math.min(1, limit);
    const isLarger = memoryRatio !== null && memoryRatio > limit;
    const isLost = before.status === 'ok' && after.status !== 'ok';
    const reasons = [
      ...(isSlower ? [`${formatRatio(times.ratio.ratio)} the time (${formatInterval(times.ratio)})`] : []),
      ...(isLarger ? [`${formatRatio(memoryRatio)} the peak memory`] : []),
      ...(isLost ? [`${statusInWords(after.status)} now`] : []),
    ];
    return reasons.length > 0 ? [{ cell, reason: reasons.join(' and ') }] : [];
  });
}

/** Records that no comparison has. */
export function unpairedOf(records: readonly CellRecord[], comparisons: readonly Comparison[]): CellRecord[] {
  const paired = new Set(comparisons.flatMap(({ before, after }) => [before, after]));
  return records.filter((record) => !paired.has(record));
}

/** The cells that were measured before and are not even in `after`, as regressions. */
export async function lostCells(
  before: readonly CellRecord[],
  comparisons: readonly Comparison[],
  entries?: readonly BenchmarkEntry[],
): Promise<Regression[]> {
  const benchmarks = await benchmarksOf(before, entries);
  return unpairedOf(before, comparisons)
    .filter(({ status }) => status === 'ok')
    .map((record) => ({
      cell: cellName(benchmarks.get(record.benchmark)!, record),
      reason: 'not there now',
    }));
}

/** The results of the comparison, one sentence each; `unpaired` cells are in only one of the sets. */
export function comparisonSummary(comparisons: readonly Comparison[], unpaired: number): string[] {
  const timed = comparisons.flatMap(({ cell, times }) => (times ? [{ cell, ...times }] : []));
  const phrases = (cells: typeof timed) =>
    cells.map(({ cell, ratio }) => `${cell} ${formatRatio(ratio.ratio)} (${formatInterval(ratio)})`);
  const sentence = (verdictWanted: string, cells: typeof timed) =>
    cells.length === 0
      ? []
      : [
          `${cells.length} of ${timed.length} got ${verdictWanted} beyond noise: ${phrases(cells).join('; ')}.`,
        ];
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
    ...memorySentence(comparisons),
    ...lost.map(
      ({ cell, after }) => `${cell} was measured before, and is ${statusInWords(after.status)} now.`,
    ),
    ...(unpaired > 0
      ? [`${unpaired} ${unpaired === 1 ? 'cell is' : 'cells are'} in one of the two alone.`]
      : []),
  ];
}

/**
 * What differs apart from the code, and may explain the ratios: device, settings and environment variables.
 * One sentence each, to be said before any verdict.
 */
export function differences(comparisons: readonly Comparison[]): string[] {
  const conditions = (record: CellRecord): Record<string, Json> => ({
    device: deviceIdentity(record.environment),
    ...record.settings,
    ...record.environment.variables,
  });
  const sides = comparisons.map(({ before, after }) => [conditions(before), conditions(after)] as const);
  const names = [...new Set(sides.flatMap((pair) => pair.flatMap(Object.keys)))];
  return names.flatMap((name) => {
    const phrases = (side: 0 | 1) =>
      [...new Set(sides.map((pair) => describeValue(pair[side][name] ?? null)))].sort().join(' or ');
    const [before, after] = [phrases(0), phrases(1)];
    return before === after ? [] : [`Different ${inWords(name)}: ${before} before, ${after} after.`];
  });
}

/** None where all peaks are the same to the second decimal. */
function memorySentence(comparisons: readonly Comparison[]): string[] {
  const changed = comparisons
    .flatMap(({ cell, memoryRatio }) => (memoryRatio === null ? [] : [{ cell, memoryRatio }]))
    .filter(({ memoryRatio }) => Math.abs(memoryRatio - 1) >= 0.005)
    .sort((a, b) => b.memoryRatio - a.memoryRatio);
  if (changed.length === 0) return [];
  const phrases = changed.map(({ cell, memoryRatio }) => `${cell} ${formatRatio(memoryRatio)}`);
  return [`Peak memory changed: ${phrases.join('; ')}.`];
}

const comparisonList = z.array(
  z.object({
    cell: z.string(),
    before: recordSchema,
    after: recordSchema,
    times: z
      .object({
        beforeMs: anyNumber,
        afterMs: anyNumber,
        ratio: z.object({ ratio: anyNumber, low: anyNumber, high: anyNumber }),
      })
      .nullable(),
    memoryRatio: anyNumber.nullable(),
    parameters: anyObject.optional(),
  }),
);

/** Throws an ArgumentError for what `compareRecords` does not give. */
export function comparisonTable(comparisons: readonly Comparison[]): Table {
  checkArgument('comparisonTable', 'comparisons', comparisons, comparisonList);
  const hasMemory = comparisons.some(({ memoryRatio }) => memoryRatio !== null);
  const isMixed = new Set(comparisons.map(({ before }) => before.benchmark)).size > 1;
  return {
    kind: 'table',
    id: 'comparison',
    title: 'After over before',
    columns: [
      ...(isMixed ? [{ key: 'benchmark', label: 'Benchmark', kind: 'text' as const }] : []),
      ...comparedColumns(comparisons),
      { key: 'beforeMs', label: 'Before', kind: 'duration', unitGroup: 'time' },
      { key: 'afterMs', label: 'After', kind: 'duration', unitGroup: 'time' },
      { key: 'ratio', label: 'Ratio', kind: 'ratio', emphasis: 'strong' },
      { key: 'interval', label: '95 % interval', kind: 'text', align: 'right', qualifies: 'ratio' },
      ...(hasMemory ? [{ key: 'memoryRatio', label: 'Memory', kind: 'ratio' as const }] : []),
      { key: 'verdict', label: 'Verdict', kind: 'text', emphasis: 'strong' },
    ],
    rows: comparisons.map(comparisonRow),
  };
}

function comparisonRow(comparison: Comparison): Row {
  const { before, after, times, memoryRatio } = comparison;
  const cell = { benchmark: before.benchmark, ...comparedValues(comparison) };
  if (times === null) {
    const unmeasured = before.status === 'ok' ? after : before;
    return {
      ...cell,
      status: unmeasured.status,
      verdict:
        before.status === 'ok' && after.status === 'ok'
          ? 'not timed'
          : `${statusInWords(before.status)} before, ${statusInWords(after.status)} after`,
    };
  }
  const { ratio, low, high } = times.ratio;
  return {
    ...cell,
    beforeMs: times.beforeMs,
    afterMs: times.afterMs,
    ratio,
    ratioLow: low,
    ratioHigh: high,
    interval: formatInterval(times.ratio),
    memoryRatio,
    verdict: verdict(times.ratio),
  };
}

/** A difference counts when its interval leaves 1 outside; without one nothing can be told apart. */
function verdict({ low, high }: RatioEstimate): string {
  if (Number.isNaN(low)) return NO_INTERVAL;
  if (high < 1) return 'faster';
  return low > 1 ? 'slower' : 'no clear difference';
}
