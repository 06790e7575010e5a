import { floorMs } from '../measuring/ceilings.ts';
import { summarize, type Summary } from '../measuring/statistics.ts';
import type { CellRecord } from '../records/record.ts';
import type { AttentionShape } from './shape.ts';
import { attentionFlops, attentionWork, type Pass } from './work.ts';

/** What follows from the samples of one pass. */
export interface PassTime {
  readonly samplesMs: readonly number[];
  readonly time: Summary;
  readonly flopsPerSecond: number;
  /** The least time under the ceilings; null where one is not known. */
  readonly floorMs: number | null;
  /** Floor over median: 1 is the roof. */
  readonly roofShare: number | null;
}

export function passTime(
  shape: AttentionShape,
  pass: Pass,
  samplesMs: readonly number[],
  { ceilings }: Pick<CellRecord, 'ceilings'>,
): PassTime {
  const time = summarize(samplesMs);
  const floor = ceilings && floorMs(attentionWork(shape, pass), ceilings, shape.dtype);
  return {
    ...{ samplesMs, time, floorMs: floor },
    flopsPerSecond: (attentionFlops(shape, pass) * 1000) / time.median,
    roofShare: floor === null ? null : floor / time.median,
  };
}
