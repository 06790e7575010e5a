import type { Row } from '@roofline/reports';
import { replaysGraphs } from '../../../execution/kinds.ts';
import { floorMs } from '../../../measuring/ceilings.ts';
import { e2eCell, type E2eCell } from '../parameters.ts';
import { e2eResult, phaseNames, type E2eResult, type PhaseName } from '../result.ts';
import type { CellRecord } from '../../../records/record.ts';
import {
  formatInterval,
  ratioOfMedians,
  summarize,
  type RatioEstimate,
  type Summary,
} from '../../../measuring/statistics.ts';
import { cellRow } from '../../../report/cell-row.ts';

/** A record with everything that is reported for it worked out. Measured parts are null unless status is `ok`. */
export interface E2eMeasurement {
  readonly cell: E2eCell;
  readonly record: CellRecord;
  readonly measured: Measured | null;
}

export interface Measured {
  readonly result: E2eResult;
  readonly device: Summary;
  readonly wall: Summary;
  /** Median of each phase, in milliseconds. */
  readonly phasesMs: Partial<Record<PhaseName, number>>;
  readonly tokensPerSecond: number;
  readonly flopsPerSecond: number;
  /** Null unless the step has an optimizer. */
  readonly optimizer: OptimizerTraffic | null;
  /** Null where the ceiling of the dtype is not known. */
  readonly floorMs: number | null;
  /** Floor over median: 1 is the roof. */
  readonly roofShare: number | null;
  /** The peer's median device time, and ours over it. Null where no peer ran, or where it failed. */
  readonly peer: {
    readonly device: Summary;
    readonly ratio: RatioEstimate;
    /** Of memory that was allocated; where it replays CUDA graphs of memory that was reserved, and so is the ratio. */
    readonly peakBytes: number | null;
    readonly memoryRatio: number | null;
  } | null;
}

/** What AdamW moves over the median of its phase, and that over the ceiling of copies. */
export interface OptimizerTraffic {
  readonly bytesPerSecond: number;
  /** Null where no ceiling was measured. */
  readonly copyShare: number | null;
}

export function interpretRecord(record: CellRecord): E2eMeasurement {
  const cell = e2eCell.parse(record.parameters);
  const measured =
    record.status === 'ok' ? interpretResult(e2eResult.parse(record.result), cell, record) : null;
  return { cell, record, measured };
}

function interpretResult(result: E2eResult, cell: E2eCell, record: CellRecord): Measured {
  const device = summarize(result.deviceMs);
  const work = Object.values(result.work);
  const flops = work.reduce((sum, phase) => sum + phase.flops, 0);
  const floor = record.ceilings ? floorMs(work, record.ceilings, cell.dtype) : null;
  const phasesMs = phaseMedians(result);
  return {
    result,
    device,
    wall: summarize(result.wallMs),
    phasesMs,
    optimizer: optimizerTraffic(result, phasesMs, record),
    tokensPerSecond: (cell.batch * cell.context * 1000) / device.median,
    flopsPerSecond: (flops * 1000) / device.median,
    floorMs: floor,
    roofShare: floor === null ? null : floor / device.median,
    peer: interpretPeer(result, cell),
  };
}

function phaseMedians({ phasesMs }: E2eResult): Measured['phasesMs'] {
  return Object.fromEntries(
    phaseNames.flatMap((name) => {
      const samples = phasesMs[name];
      return samples ? [[name, summarize(samples).median]] : [];
    }),
  );
}

function optimizerTraffic(
  { work }: E2eResult,
  { optimizer: milliseconds }: Measured['phasesMs'],
  { ceilings }: CellRecord,
): OptimizerTraffic | null {
  if (work.optimizer === undefined || milliseconds === undefined) return null;
  const bytesPerSecond = (work.optimizer.bytes * 1000) / milliseconds;
  return { bytesPerSecond, copyShare: ceilings && bytesPerSecond / ceilings.copyBytesPerSecond };
}

function interpretPeer({ deviceMs, peer, memory }: E2eResult, cell: E2eCell): Measured['peer'] {
  if (peer?.status !== 'ok') return null;
  const counted = replaysGraphs(cell.peerExecution) ? 'peakReservedBytes' : 'peakAllocatedBytes';
  const peakBytes = peer[counted];
  return {
    device: summarize(peer.deviceMs),
    ratio: ratioOfMedians(deviceMs, peer.deviceMs),
    peakBytes,
    memoryRatio: peakBytes === null ? null : memory[counted] / peakBytes,
  };
}

/** The flat row of tables and of `--json`. Times in milliseconds, sizes in bytes, shares as fractions. */
export function tableRow({ cell, record, measured }: E2eMeasurement): Row {
  return { ...cellRow(cell, record), ...(measured ? measuredFields(measured) : {}) };
}

function measuredFields(measured: Measured): Row {
  const { device, result, phasesMs } = measured;
  return {
    meanMs: device.mean,
    // One step has no spread.
    stdMs: device.count > 1 ? device.std : null,
    medianMs: device.median,
    minMs: device.min,
    maxMs: device.max,
    wallMedianMs: measured.wall.median,
    forwardMs: phasesMs.forward,
    backwardMs: phasesMs.backward,
    optimizerMs: phasesMs.optimizer,
    ...(measured.optimizer && {
      optimizerGigabytesPerSecond: measured.optimizer.bytesPerSecond / 1e9,
      optimizerCopyShare: measured.optimizer.copyShare,
    }),
    tokensPerSecond: measured.tokensPerSecond,
    teraflopsPerSecond: measured.flopsPerSecond / 1e12,
    gigaflopsPerSecond: measured.flopsPerSecond / 1e9,
    floorMs: measured.floorMs,
    roofShare: measured.roofShare,
    peakBytes: result.memory.peakAllocatedBytes,
    parameters: result.parameterCount,
    loss: result.loss,
    ...peerFields(measured),
  };
}

function peerFields({ peer, result }: Measured): Row {
  if (result.peer && result.peer.status !== 'ok') {
    return { peerStatus: result.peer.status, peerError: result.peer.error.message };
  }
  if (peer === null) return {};
  return {
    peerMs: peer.device.median,
    peerMinMs: peer.device.min,
    ratio: peer.ratio.ratio,
    ratioLow: peer.ratio.low,
    ratioHigh: peer.ratio.high,
    ratioInterval: formatInterval(peer.ratio),
    peerPeakBytes: peer.peakBytes,
    memoryRatio: peer.memoryRatio,
  };
}
