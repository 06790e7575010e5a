import type { DType } from '@roofline/tensor-core';
import type { CollectiveKind, Loss, Outcome, Reduction, TimeSpan } from '../group/backend.ts';
import { performanceTime } from './monotonic-clock.ts';

// The numbers of the enumerations in native/gloo_shim.cc.

export const kinds: Readonly<Record<CollectiveKind | 'connect', number>> = {
  allReduce: 0,
  broadcast: 1,
  reduce: 2,
  allGather: 3,
  reduceScatter: 4,
  allToAll: 5,
  gather: 6,
  scatter: 7,
  send: 8,
  recv: 9,
  barrier: 10,
  shift: 11,
  connect: 12,
};

/** A bool is no number to reduce, and has none. */
export const dtypeCodes: Readonly<Partial<Record<DType, number>>> = {
  float32: 0,
  float16: 1,
  bfloat16: 2,
  float64: 3,
  int32: 4,
  int64: 5,
};

export const reductionCodes: Readonly<Record<Reduction, number>> = {
  sum: 0,
  product: 1,
  min: 2,
  max: 3,
  average: 4,
};

const pending = 0;
const done = 1;
const mismatch = 2;

/** What a state, its text and its times mean; null for a call that still runs. */
export function readOutcome(state: number, text: string, ranNs: BigInt64Array): Outcome | null {
  if (state === pending) return null;
  if (state === done) return { status: 'done', ran: spanOf(ranNs) };
  if (state === mismatch) return { status: 'mismatch', descriptions: text.split('\n').slice(0, -1) };
  const [losses, ...message] = text.split('\n');
  return { status: 'failed', losses: readLosses(losses!), message: message.join('\n') };
}

function spanOf([startNs, endNs]: BigInt64Array): TimeSpan {
  return { startMs: performanceTime(startNs!), endMs: performanceTime(endNs!) };
}

/** `2:gone,3:late` as a map. */
function readLosses(text: string): Map<number, Loss> {
  const losses = new Map<number, Loss>();
  for (const entry of text.split(',').filter((part) => part !== '')) {
    const [rank, loss] = entry.split(':');
    losses.set(Number(rank), loss as Loss);
  }
  return losses;
}
