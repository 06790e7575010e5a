import type { Compilation } from '../execution/compilation.ts';
import { ratioOfMedians, summarize } from '../measuring/statistics.ts';
import type { ColumnOf } from './declared-table.ts';
import { column } from './standard-columns.ts';

/** Samples of one way to run, and the most bytes that it held. */
export interface TimedWay {
  readonly deviceMs: readonly number[];
  readonly wallMs: readonly number[];
  readonly peakBytes: number;
}

/** What runs compiled, and the same run eagerly. */
export interface BesideEager {
  readonly eager: TimedWay;
  readonly compiled: TimedWay;
  readonly compilation: Compilation | null;
}

const median = (samples: readonly number[]) => summarize(samples).median;

/** Columns that compare the two. */
export const besideEagerColumns: readonly ColumnOf<BesideEager>[] = [
  column.ms('eagerMs', 'Eager', ({ eager }) => median(eager.deviceMs), {
    description: 'Median of the device time.',
  }),
  column.ms('compiledMs', 'Compiled', ({ compiled }) => median(compiled.deviceMs), { emphasis: 'strong' }),
  column.ratio(
    'ratio',
    'Compiled / eager',
    ({ eager, compiled }) => ratioOfMedians(compiled.deviceMs, eager.deviceMs).ratio,
    { emphasis: 'strong', description: 'Of the medians: below 1 is faster compiled.' },
  ),
  column.ms('compileMs', 'Compiling', ({ compilation }) => compilation?.durationMs ?? null, {
    description: 'By the wall clock: the calls until the first that ran as a program, that one included.',
  }),
  column.number('paysAfter', 'Pays after', callsUntilItPays, {
    unit: 'calls',
    description: 'Calls after which compiling has saved more wall time than it took.',
  }),
  column.ratio('memoryRatio', 'Memory ratio', ({ eager, compiled }) => compiled.peakBytes / eager.peakBytes, {
    description: 'Of the peaks, compiled over eager.',
  }),
];

function callsUntilItPays({ eager, compiled, compilation }: BesideEager): number | null {
  const savedMs = median(eager.wallMs) - median(compiled.wallMs);
  return compilation && savedMs > 0 ? Math.ceil(compilation.durationMs / savedMs) : null;
}
