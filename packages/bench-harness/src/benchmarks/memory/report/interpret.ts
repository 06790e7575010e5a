import type { Row } from '@roofline/reports';
import { variantWords, e2eCell } from '../../e2e/parameters.ts';
import type { CellRecord } from '../../../records/record.ts';
import { summarize } from '../../../measuring/statistics.ts';
import type { MemoryCell } from '../parameters.ts';
import { memoryResult, type MemoryResult } from '../result.ts';
import { cellRow } from '../../../report/cell-row.ts';

/** A record and what it says. `result` is null unless its status is `ok`. */
export interface MemoryMeasurement {
  readonly cell: MemoryCell;
  readonly record: CellRecord;
  readonly result: MemoryResult | null;
}

export function interpretMemory(record: CellRecord): MemoryMeasurement {
  const result = record.status === 'ok' ? memoryResult.parse(record.result) : null;
  return { cell: e2eCell.parse(record.parameters), record, result };
}

/** `small, context 256, train-step, bfloat16`. */
export function nameOf({ cell }: MemoryMeasurement): string {
  const { size, context, mode, dtype } = cell;
  return [size, `context ${context}`, mode, dtype, ...variantWords(cell)].join(', ');
}

/** Time of a step with recording on over that with it off: medians. */
export function overheadRatio({ overhead }: MemoryResult): number {
  return summarize(overhead.onMs).median / summarize(overhead.offMs).median;
}

/** The flat row of tables and of `--json`. Sizes in bytes. */
export function memoryRow({ cell, record, result }: MemoryMeasurement): Row {
  return { ...cellRow(cell, record), ...(result ? measuredFields(result) : {}) };
}

function measuredFields(result: MemoryResult): Row {
  const peakOf = (phase: string) => result.phases.find((each) => each.phase === phase)?.bytes ?? null;
  return {
    peakBytes: result.peakAllocatedBytes,
    reservedBytes: result.peakReservedBytes,
    allocatedShare: result.peakAllocatedBytes / result.peakReservedBytes,
    forwardBytes: peakOf('forward'),
    backwardBytes: peakOf('backward'),
    optimizerBytes: peakOf('optimizer'),
    stepBytes: peakOf('whole step'),
    arenaBytes: result.arenaBytes === 0 ? null : result.arenaBytes,
    weightBytes: result.weightBytes,
    otherHeldBytes: result.otherHeldBytes,
    savedBytes: result.savedBytes,
    blockBytes: result.savedByBlock?.bytes ?? null,
    residualBytes: result.residual.bytes,
    blockPerResidual: result.savedByBlock ? result.savedByBlock.bytes / result.residual.bytes : null,
    allocations: result.allocationCount,
    recordingRatio: overheadRatio(result),
    snapshot: result.snapshot,
  };
}
