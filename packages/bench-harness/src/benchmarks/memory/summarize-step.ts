import {
  byteSize,
  peakMemory,
  type Allocation,
  type DType,
  type MemoryPeak,
  type MemoryRecord,
} from '@roofline/tensor-core';
import { phaseNames } from '../e2e/result.ts';
import { describeLarge, describeSaved, purposeOf, sharesOf, sum } from './describe-allocation.ts';
import type { RecordedStep } from './record-step.ts';
import type { MemoryCell } from './parameters.ts';
import type { MemoryResult, MemoryShare, PhasePeak } from './result.ts';
import { arenaLabel, recordTimeline, type HeldBefore } from './timeline.ts';

const FLOAT32_BYTES = 4;
const LARGEST = 10;
const CONTRIBUTORS = 5;
/** The block whose saved bytes are reported; all are alike. */
const BLOCK = 'layers.0';

/** Everything that is reported for a recorded step. */
export function summarizeStep(
  cell: MemoryCell,
  { record, saved, peakAllocatedBytes, peakReservedBytes }: RecordedStep,
  parameterCount: number,
): Omit<MemoryResult, 'parameterCount' | 'overhead' | 'snapshot'> {
  const [arena, others] = heldOf(record.allocations);
  const weightBytes = Math.min(sum(others), parameterCount * FLOAT32_BYTES);
  const held: HeldBefore = { weightBytes, arenaBytes: sum(arena), otherHeldBytes: sum(others) - weightBytes };
  const made = record.allocations.filter(({ startUs }) => startUs !== null);
  const largest = [...made].sort((a, b) => b.bytes - a.bytes).slice(0, LARGEST);
  const kept = savedByTape(record, saved);
  return {
    allocationCount: made.length,
    peakAllocatedBytes,
    peakReservedBytes,
    ...held,
    phases: phasePeaks(cell, record, held),
    largest: largest.map(describeLarge),
    savedByBlock: savedOfBlock(kept),
    gradientsOfBlock: gradientsOfBlock(record),
    savedBytes: byteLengths(kept.filter(({ isParameterCast }) => !isParameterCast)),
    residual: residualStream(cell, record),
    timeline: recordTimeline(record, held),
  };
}

/** Rotary tables and the like are read by the backward pass too, but they live anyway. */
function savedByTape({ allocations }: MemoryRecord, saved: RecordedStep['saved']): RecordedStep['saved'] {
  const permanent = new Set(
    allocations
      .filter(({ startUs, endUs }) => startUs === null && endUs === null)
      .map(({ address }) => address),
  );
  return saved.filter(({ address }) => !permanent.has(address));
}

function savedOfBlock(saved: RecordedStep['saved']): MemoryResult['savedByBlock'] {
  const ofBlock = saved.filter(({ range }) => range.includes(BLOCK));
  if (ofBlock.length === 0) return null;
  const activations = ofBlock
    .filter(({ isParameterCast }) => !isParameterCast)
    .sort((a, b) => b.byteLength - a.byteLength);
  return {
    block: BLOCK,
    bytes: byteLengths(activations),
    weightCastBytes: byteLengths(ofBlock) - byteLengths(activations),
    count: activations.length,
    contributors: activations.slice(0, CONTRIBUTORS).map(describeSaved),
  };
}

/** What the backward pass has made in a block, and not freed. A compiled step has them in its arena. */
function gradientsOfBlock({ allocations, events }: MemoryRecord): MemoryResult['gradientsOfBlock'] {
  const freed = new Set(
    events.flatMap((event) =>
      event.action === 'free' && event.phase === 'backward' ? [event.allocation] : [],
    ),
  );
  const left = allocations.filter(
    (each) => each.phase === 'backward' && each.range.includes(BLOCK) && !freed.has(each),
  );
  return left.length === 0 ? null : { bytes: sum(left), count: left.length };
}

function byteLengths(saved: RecordedStep['saved']): number {
  return saved.reduce((total, { byteLength }) => total + byteLength, 0);
}

/** What was held before the recording began: the arenas of compiled functions, and the rest. */
function heldOf(allocations: readonly Allocation[]): [arenas: Allocation[], others: Allocation[]] {
  const held = allocations.filter(({ startUs }) => startUs === null);
  return [held.filter(({ op }) => op !== null), held.filter(({ op }) => op === null)];
}

/** A graph has no phases that the host can see: its step is one. */
function phasePeaks(cell: MemoryCell, record: MemoryRecord, held: HeldBefore): PhasePeak[] {
  const peaks = phaseNames.flatMap((phase) => phasePeak(phase, peakMemory(record, phase), held));
  if (cell.execution === 'eager' || peaks.length > 0) return peaks;
  return phasePeak('whole step', peakMemory(record), held);
}

function phasePeak(phase: string, peak: MemoryPeak | null, held: HeldBefore): PhasePeak[] {
  if (peak === null) return [];
  return [{ phase, bytes: peak.bytes, live: liveShares(peak.live, held) }];
}

function liveShares(live: readonly Allocation[], { weightBytes }: HeldBefore): MemoryShare[] {
  const [arena, others] = heldOf(live);
  const weights = Math.min(weightBytes, sum(others));
  const held = [
    { what: 'weights', bytes: weights },
    { what: arenaLabel, bytes: sum(arena) },
    { what: 'optimizer state, tables and batch', bytes: sum(others) - weights },
  ];
  const made = live
    .filter(({ startUs }) => startUs !== null)
    .map((allocation) => ({ what: purposeOf(allocation), bytes: allocation.bytes }));
  return sharesOf([...held.filter(({ bytes }) => bytes > 0), ...made]);
}

/** The size of what each block takes and gives, by formula; its dtype is read from the running model. */
function residualStream({ batch, context, shape, dtype }: MemoryCell, record: MemoryRecord) {
  const output = record.allocations.findLast(
    ({ phase, range, op }) => phase === 'forward' && range.at(-1) === BLOCK && op === 'add',
  );
  const residual: DType = output?.dtype ?? dtype;
  return { dtype: residual, bytes: batch * context * shape.modelDimension * byteSize(residual) };
}
