import type { Row } from '@roofline/reports';
import { attentionFlops, attentionWork, type Pass } from '../../../attention/work.ts';
import { floorMs } from '../../../measuring/ceilings.ts';
import { summarize, type Summary } from '../../../measuring/statistics.ts';
import type { CellRecord } from '../../../records/record.ts';
import { outcomeOf } from '../../../report/cell-row.ts';
import { memoryNeed, type MemoryNeed } from '../memory-formula.ts';
import { attentionCell, type AttentionCell } from '../parameters.ts';
import { attentionResult, bothPasses, type AttentionResult } from '../result.ts';

/** What is reported for the passes of one kind. */
export interface MeasuredPass {
  readonly device: Summary;
  readonly flopsPerSecond: number;
  /** The least time under the ceilings over the median; null where a ceiling is not known. */
  readonly roofShare: number | null;
}

/** A record with what is reported for it worked out. Measured parts are null unless status is `ok`. */
export interface AttentionMeasurement {
  readonly cell: AttentionCell;
  readonly record: CellRecord;
  readonly need: MemoryNeed;
  readonly measured: {
    readonly forward: MeasuredPass;
    /** Null where a program runs both passes. */
    readonly backward: MeasuredPass | null;
    readonly both: MeasuredPass;
    readonly result: AttentionResult;
    readonly memory: AttentionResult['memory'];
  } | null;
}

export function interpretAttention(record: CellRecord): AttentionMeasurement {
  const cell = attentionCell.parse(record.parameters);
  const need = memoryNeed(cell);
  if (record.status !== 'ok') return { cell, record, need, measured: null };
  const result = attentionResult.parse(record.result);
  const { forward, backward, memory } = result;
  const pass = (name: Pass, samples: readonly number[]): MeasuredPass => {
    const shape = { ...cell, heads: 1 };
    const device = summarize(samples);
    const floor = record.ceilings && floorMs(attentionWork(shape, name), record.ceilings, cell.dtype);
    return {
      device,
      flopsPerSecond: (attentionFlops(shape, name) * 1000) / device.median,
      roofShare: floor === null ? null : floor / device.median,
    };
  };
  const measured = {
    forward: pass('forward', forward.deviceMs),
    backward: backward && pass('backward', backward.deviceMs),
    both: pass('both', bothPasses(result).deviceMs),
    result,
    memory,
  };
  return { cell, record, need, measured };
}

/** The flat row of tables and of `--json`. Times in milliseconds, sizes in bytes, shares as fractions. */
export function attentionRow({ cell, record, need, measured }: AttentionMeasurement): Row {
  const { attention, execution, batch, headDimension, sequence, dtype } = cell;
  return {
    ...{ attention, execution, batch, headDimension, sequence, dtype },
    ...outcomeOf(record),
    neededBytes: need.beforeBackwardBytes,
    keptBytes: need.keptBytes,
    neededPeakBytes: need.peakBytes,
    ...(measured && {
      ...passFields('forward', measured.forward),
      ...(measured.backward && passFields('backward', measured.backward)),
      ...passFields('both', measured.both),
      beforeBackwardBytes: measured.memory.beforeBackwardBytes,
      beforeBackwardRatio:
        measured.memory.beforeBackwardBytes && measured.memory.beforeBackwardBytes / need.beforeBackwardBytes,
      peakForwardBytes: measured.memory.peakForwardBytes,
      peakBytes: measured.memory.peakAllocatedBytes,
      peakRatio: need.peakBytes === null ? null : measured.memory.peakAllocatedBytes / need.peakBytes,
    }),
  };
}

function passFields(pass: string, { device, flopsPerSecond, roofShare }: MeasuredPass): Row {
  return {
    [`${pass}Ms`]: device.mean,
    // One pass has no spread.
    [`${pass}StdMs`]: device.count > 1 ? device.std : null,
    [`${pass}MedianMs`]: device.median,
    [`${pass}TeraflopsPerSecond`]: flopsPerSecond / 1e12,
    [`${pass}RoofShare`]: roofShare,
  };
}
