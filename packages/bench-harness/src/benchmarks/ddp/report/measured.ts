import { summarize } from '../../../measuring/statistics.ts';
import { workedOut, type Measured, type Measurement } from '../../../report/measurement.ts';
import { type Overlap, overlapOf, splitPass } from '../overlap.ts';
import { type DdpCell, isSharded, sendsActivations, shardsOf, tensorRanksOf } from '../parameters.ts';
import type { DdpResult } from '../result.ts';

export type DdpMeasurement = Measurement<DdpCell, DdpResult>;
export type MeasuredDdp = Measured<DdpCell, DdpResult>;

/** What follows from one cell's samples: medians over the steps, in milliseconds, each by its slowest rank. */
export interface DdpTimes {
  /** Null for compiled cells, whose update is part of the step's program. */
  readonly optimizerMs: number | null;
  /** All reductions of a step, alone. */
  readonly communicationMs: number;
  /**
   * What communication adds to a forward and backward pass: the median of each with less the one without before it. Null for
   * sharded parameters, which have no pass without.
   */
  readonly exposedMs: number | null;
  /** The share of `communicationMs` that a pass is spared: "Saved". Null for one rank, which communicates nothing. */
  readonly savedShare: number | null;
  readonly gradientBytes: number;
  /** PyTorch's step; null without a peer. */
  readonly peerMs: number | null;
  /** nccl-tests' busbw: bytes · 2(n-1)/n over the time; null for one rank. */
  readonly busGigabytesPerSecond: number | null;
}

export const timesOf = workedOut(({ result, cell }: MeasuredDdp): DdpTimes => {
  const { times, bucketBytes, parameterCount, peer } = result;
  const { worldSize, mode } = cell;
  const median = (samples: readonly number[]) => summarize(samples).median;
  const communicationMs = median(times.communicationMs);
  // Pass by pass, which run in turn: what slows the machine for a while slows both.
  const { localMs, synchronizedMs, optimizerMs } = times;
  const exposedMs =
    localMs && synchronizedMs && median(synchronizedMs.map((ms, step) => ms - localMs[step]!));
  // The calls of divided layers and sequences move activations.
  const gradientBytes = sendsActivations(cell)
    ? (Float32Array.BYTES_PER_ELEMENT * parameterCount) / (tensorRanksOf(cell) > 1 ? shardsOf(cell) : 1)
    : bucketBytes.reduce((sum, bytes) => sum + bytes, 0);
  const isAlone = worldSize === 1;
  return {
    ...{ communicationMs, exposedMs, gradientBytes },
    optimizerMs: optimizerMs && median(optimizerMs),
    savedShare: isAlone || exposedMs === null ? null : 1 - exposedMs / communicationMs,
    peerMs: peer?.status === 'ok' ? median(peer.stepMs) : null,
    busGigabytesPerSecond:
      isAlone || isSharded(mode)
        ? null
        : (gradientBytes * 2 * (worldSize - 1)) / worldSize / (communicationMs * 1e6),
  };
});

/** What the profiles of all ranks say about one pass. */
export type ProfiledOverlap =
  | {
      readonly status: 'ok';
      /** What was taken for communication: NCCL's kernels, or the works of Gloo's threads. */
      readonly communication: 'kernels' | 'works';
      readonly share: number;
    }
  | { readonly status: 'failed'; readonly error: string };

/**
 * Of all ranks' profiled passes, in how much of the communication's time something was calculated: "Hidden". Null where
 * nothing was profiled, or nothing communicated.
 */
export const profiledOverlap = workedOut(({ result, cell }: MeasuredDdp): ProfiledOverlap | null => {
  const { profiledPasses: passes } = result;
  const [first] = passes;
  if (cell.worldSize === 1) return null;
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
  // On the CPU the op that reads what divided layers or sequences exchange waits for it, which is no calculation.
  if (communication === 'works' && sendsActivations(cell)) return null;
  return { status: 'ok', communication, share: Math.max(0, sum('hiddenUs')) / communicationUs };
});

/** Bytes of AdamW's two float32 moments on a rank that has all of them, or an even share, by ZeRO stage 1 or of its shards. */
export function stateBytesByFormula(cell: DdpCell, parameterCount: number): number {
  const whole = 2 * Float32Array.BYTES_PER_ELEMENT * parameterCount;
  return whole / (cell.optimizer === 'whole' ? shardsOf(cell) : cell.worldSize);
}
