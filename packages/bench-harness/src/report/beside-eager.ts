import type { Column, Row } from '@roofline/reports';
import type { Compilation } from '../execution/compilation.ts';
import { ratioOfMedians, summarize } from '../measuring/statistics.ts';

/** Columns that compare what runs compiled with the same run eagerly. */
export const besideEagerColumns: readonly Column[] = [
  { key: 'eagerMs', label: 'Eager', unit: 'ms', kind: 'duration', description: 'Median of the device time.' },
  { key: 'compiledMs', label: 'Compiled', unit: 'ms', kind: 'duration', emphasis: 'strong' },
  {
    key: 'ratio',
    label: 'Compiled / eager',
    kind: 'ratio',
    emphasis: 'strong',
    description: 'Of the medians: below 1 is faster compiled.',
  },
  {
    key: 'compileMs',
    label: 'Compiling',
    unit: 'ms',
    kind: 'duration',
    description: 'By the wall clock: the calls until the first that ran as a program, that one included.',
  },
  {
    key: 'paysAfter',
    label: 'Pays after',
    unit: 'calls',
    kind: 'number',
    description: 'Calls after which compiling has saved more wall time than it took.',
  },
  {
    key: 'memoryRatio',
    label: 'Memory ratio',
    kind: 'ratio',
    description: 'Of the peaks, compiled over eager.',
  },
];

/** Samples of one way to run, and the most bytes that it held. */
export interface TimedWay {
  readonly deviceMs: readonly number[];
  readonly wallMs: readonly number[];
  readonly peakBytes: number;
}

export function besideEager(eager: TimedWay, compiled: TimedWay, compilation: Compilation | null): Row {
  const savedMs = summarize(eager.wallMs).median - summarize(compiled.wallMs).median;
  return {
    eagerMs: summarize(eager.deviceMs).median,
    compiledMs: summarize(compiled.deviceMs).median,
    ratio: ratioOfMedians(compiled.deviceMs, eager.deviceMs).ratio,
    compileMs: compilation?.durationMs ?? null,
    paysAfter: compilation && savedMs > 0 ? Math.ceil(compilation.durationMs / savedMs) : null,
    memoryRatio: compiled.peakBytes / eager.peakBytes,
  };
}
