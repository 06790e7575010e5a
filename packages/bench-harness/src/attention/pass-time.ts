import { floorMs } from '../measuring/ceilings.ts';
import { summarize } from '../measuring/statistics.ts';
import type { CellRecord } from '../records/record.ts';
import type { AttentionShape } from './shape.ts';
import { attentionFlops, attentionWork, type Pass } from './work.ts';

/** What follows from the samples of one pass. */
export function passTime(
  shape: AttentionShape,
  pass: Pass,
  samplesMs: readonly number[],
  { ceilings }: Pick<CellRecord, 'ceilings'>,
) {
  const time = summarize(samplesMs);
  const floor = ceilings && floorMs(attentionWork(shape, pass), ceilings, shape.dtype);
  return {
    ...{ samplesMs, time },
    /** The least time under the ceilings; null where one is not known. */
    floorMs: floor,
    flopsPerSecond: (attentionFlops(shape, pass) * 1000) / time.median,
    /** Floor over median: 1 is the roof. */
    roofShare: floor === null ? null : floor / time.median,
  };
}
export type PassTime = ReturnType<typeof passTime>;
