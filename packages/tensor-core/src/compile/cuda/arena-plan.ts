import { blockBytes } from '@roofline/cuda/parts';
import { fitIntoGaps, ordersToFit } from './first-fit.ts';
import type { SizedPart } from './sized-part.ts';
import { stackParts } from './skyline.ts';

/** Memory of the arena that is needed from the call `first` to the call `last`, both included. */
export interface ArenaPart {
  readonly byteLength: number;
  readonly first: number;
  readonly last: number;
}

/** A part and its offset in the arena. */
export interface PlacedPart extends ArenaPart {
  readonly offset: number;
}

/**
 * Places parts in one piece of memory, so that parts needed at the same time do not overlap; they are returned in their order.
 * Finding the shortest arena is NP-hard: several heuristics are tried and the shortest result is taken. For training steps it
 * comes within a few MB of the most bytes that are needed at one time.
 */
export function planArena(parts: readonly ArenaPart[]): PlacedPart[] {
  const sized = parts.map((part) => ({ ...part, bytes: blockBytes(part.byteLength) }));
  const { bytes, call } = fullestCall(parts);
  let [best, bestBytes]: [PlacedPart[], number] = [[], Infinity];
  for (const offsets of waysToPlace(sized, call)) {
    const plan = parts.map((part, i) => ({ ...part, offset: offsets.get(sized[i]!)! }));
    const planned = arenaBytes(plan);
    if (planned < bestBytes) [best, bestBytes] = [plan, planned];
    if (bestBytes <= bytes) break;
  }
  return best;
}

function* waysToPlace(
  parts: readonly SizedPart[],
  fullest: number,
): Generator<ReadonlyMap<SizedPart, number>> {
  for (const order of ordersToFit(parts, fullest)) yield fitIntoGaps(order);
  yield stackParts(parts);
}

/** The length of an arena that holds these parts. */
export function arenaBytes(parts: Iterable<PlacedPart>): number {
  let end = 0;
  for (const { offset, byteLength } of parts) end = Math.max(end, offset + blockBytes(byteLength));
  return end;
}

/** A gap between parts, or between the last of them and the end. */
export interface Gap {
  readonly offset: number;
  readonly byteLength: number;
}

/** What is free during the calls of a span in an arena of `byteLength` bytes; `parts` are sorted by offset. */
export function gapsIn(
  parts: readonly PlacedPart[],
  span: { readonly first: number; readonly last: number },
  byteLength: number,
): Gap[] {
  const lying = parts.filter(({ first, last }) => first <= span.last && span.first <= last);
  const gaps: Gap[] = [];
  let end = 0;
  for (const part of [...lying, { offset: byteLength, byteLength: 0 }]) {
    if (part.offset > end) gaps.push({ offset: end, byteLength: part.offset - end });
    end = Math.max(end, part.offset + blockBytes(part.byteLength));
  }
  return gaps;
}

/** The first call at which parts need the most bytes: a lower bound for the arena's length. */
export function fullestCall(parts: readonly ArenaPart[]): { readonly call: number; readonly bytes: number } {
  const changes = new Map<number, number>();
  const change = (at: number, bytes: number) => changes.set(at, (changes.get(at) ?? 0) + bytes);
  for (const { byteLength, first, last } of parts) {
    change(first, blockBytes(byteLength));
    change(last + 1, -blockBytes(byteLength));
  }
  let [call, bytes, sum] = [0, 0, 0];
  for (const [at, changed] of [...changes].toSorted(([a], [b]) => a - b)) {
    sum += changed;
    if (sum > bytes) [call, bytes] = [at, sum];
  }
  return { call, bytes };
}
