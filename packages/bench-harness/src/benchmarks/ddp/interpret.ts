import type { CellRecord } from '../../records/record.ts';
import { summarize } from '../../measuring/statistics.ts';
import { type Overlap, overlapOf, splitPass } from './overlap.ts';
import { type DdpCell, ddpCell } from './parameters.ts';
import { type DdpResult, ddpResult } from './result.ts';

/** What follows from one cell's samples: medians over the steps, each by its slowest rank. */
export interface DdpMeasurement {
  readonly result: DdpResult;
  readonly stepMs: number;
  readonly stepStdMs: number | null;
  readonly optimizerMs: number;
  /** All reductions of a step, alone. */
  readonly communicationMs: number;
  /** What communication adds to a forward and backward pass: the median of each with less the one without before it. */
  readonly exposedMs: number;
  /** The share of `communicationMs` that a pass is spared: the table's "Saved". Null for one rank, which communicates nothing. */
  readonly savedShare: number | null;
  /** Of all ranks' profiled passes, in how much of the communication's time something was calculated: its "Hidden". */
  readonly overlap: ProfiledOverlap | null;
  readonly gradientBytes: number;
  /** PyTorch's step, and ours over it; null without a peer. */
  readonly peerMs: number | null;
  readonly ratio: number | null;
  /** nccl-tests' busbw: bytes · 2(n-1)/n over the time; null for one rank. */
  readonly busGigabytesPerSecond: number | null;
}

/** What the profiles of all ranks say about one pass. */
export type ProfiledOverlap =
  | {
      readonly status: 'ok';
      /** What was taken for communication: NCCL's kernels, or the works of Gloo's threads. */
      readonly communication: 'kernels' | 'works';
      readonly share: number;
    }
  | { readonly status: 'failed'; readonly error: string };

export interface DdpRecord {
  readonly cell: DdpCell;
  readonly record: CellRecord;
  /** Null unless the status is `ok`. */
  readonly measured: DdpMeasurement | null;
}

export function interpretDdp(record: CellRecord): DdpRecord {
  const cell = ddpCell.parse(record.parameters);
  const measured = record.status === 'ok' ? measure(ddpResult.parse(record.result), cell.worldSize) : null;
  return { cell, record, measured };
}

function measure(result: DdpResult, worldSize: number): DdpMeasurement {
  const { times, bucketBytes } = result;
  const median = (samples: readonly number[]) => summarize(samples).median;
  const step = summarize(times.stepMs);
  const communicationMs = median(times.communicationMs);
  // Pass by pass, which run in turn: what slows the machine for a while slows both.
  const exposedMs = median(times.synchronizedMs.map((ms, step) => ms - times.localMs[step]!));
  const gradientBytes = bucketBytes.reduce((sum, bytes) => sum + bytes, 0);
  const isAlone = worldSize === 1;
  const peerMs = result.peer?.status === 'ok' ? median(result.peer.stepMs) : null;
  return {
    result,
    stepMs: step.median,
    stepStdMs: step.count > 1 ? step.std : null,
    optimizerMs: median(times.optimizerMs),
    communicationMs,
    exposedMs,
    savedShare: isAlone ? null : 1 - exposedMs / communicationMs,
    overlap: isAlone ? null : profiledOverlap(result.profiledPasses),
    gradientBytes,
    peerMs,
    ratio: peerMs === null ? null : step.median / peerMs,
    busGigabytesPerSecond: isAlone
      ? null
      : (gradientBytes * 2 * (worldSize - 1)) / worldSize / (communicationMs * 1e6),
  };
}

/** Null where nothing was profiled, or nothing communicated. */
function profiledOverlap(passes: DdpResult['profiledPasses']): ProfiledOverlap | null {
  const [first] = passes;
  const failed = passes.find((pass) => pass.status === 'failed');
  if (failed) return failed;
  if (first?.status !== 'ok') return null;
  const overlaps = passes
    .filter((pass) => pass.status === 'ok')
    .map((pass) => splitPass(pass))
    .map(({ computation, communication }) => overlapOf(computation, communication));
  const sum = (key: keyof Overlap) => overlaps.reduce((total, overlap) => total + overlap[key], 0);
  const communicationUs = sum('communicationUs');
  if (communicationUs === 0) return null;
  const { communication } = first;
  return { status: 'ok', communication, share: Math.max(0, sum('hiddenUs')) / communicationUs };
}

/** Bytes of AdamW's two float32 moments on a rank that has all of them, or by ZeRO stage 1 an even share. */
export function stateBytesByFormula({ optimizer, worldSize }: DdpCell, parameterCount: number): number {
  const whole = 2 * Float32Array.BYTES_PER_ELEMENT * parameterCount;
  return optimizer === 'whole' ? whole : whole / worldSize;
}
