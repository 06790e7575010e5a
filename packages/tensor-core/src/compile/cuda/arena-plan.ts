import { blockBytes } from '@roofline/cuda/parts';
import { fitIntoGaps, ordersToFit } from './first-fit.ts';
import type { SizedPart } from './sized-part.ts';
import { stackParts } from './skyline.ts';

/** Memory of the arena that something needs from one call of a program to another, both included. */
export interface ArenaPart {
  readonly byteLength: number;
  readonly first: number;
  readonly last: number;
}

/** A part and where it lies. */
export interface PlacedPart extends ArenaPart {
  readonly offset: number;
}

/**
 * Where parts lie in one piece of memory so that those that are needed at one time lie apart, in their order. To find the
 * shortest arena of all is NP-hard; of several that are tried the shortest is taken. Those of training steps come within
 * a few MB of the bytes that are needed at one time.
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

/** How long an arena of such parts is. */
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

/** What a call leaves free of an arena of so many bytes; the parts are in the order of their offsets. */
export function gapsAt(parts: readonly PlacedPart[], call: number, byteLength: number): Gap[] {
  const lying = parts.filter(({ first, last }) => first <= call && call <= last);
  const gaps: Gap[] = [];
  let end = 0;
  for (const part of [...lying, { offset: byteLength, byteLength: 0 }]) {
    if (part.offset > end) gaps.push({ offset: end, byteLength: part.offset - end });
    end = part.offset + blockBytes(part.byteLength);
  }
  return gaps;
}

/** The first call at which parts need as many bytes as at no other: no arena is shorter. */
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
