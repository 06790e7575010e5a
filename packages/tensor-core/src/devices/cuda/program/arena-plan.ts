import { blockBytes } from '../memory/allocator.ts';

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
 * Where parts lie in one piece of memory so that those that are needed at one time lie apart, in their order. One after the
 * other is put into the first gap that takes it, in several orders, of which the one with the shortest arena is taken. To
 * find the shortest of all is NP-hard; those of training steps come within a percent of the bytes that are needed at one
 * time, most of them within a tenth of it.
 */
export function planArena(parts: readonly ArenaPart[]): PlacedPart[] {
  const { bytes, call } = fullestCall(parts);
  let [best, bestBytes] = [new Map<ArenaPart, PlacedPart>(), Infinity];
  for (const order of ordersOf(parts, call)) {
    const plan = placeInOrder(order);
    const planned = arenaBytes(plan.values());
    if (planned < bestBytes) [best, bestBytes] = [plan, planned];
    if (bestBytes <= bytes) break;
  }
  return parts.map((part) => best.get(part)!);
}

/**
 * Those that are needed at the fullest call before all others, as they come up or as they go; what stays, with the largest
 * or with what goes last behind it; the largest.
 */
function* ordersOf(parts: readonly ArenaPart[], fullest: number): Generator<ArenaPart[]> {
  const bySize = parts.toSorted(
    (a, b) => b.byteLength - a.byteLength || b.last - b.first - (a.last - a.first) || a.first - b.first,
  );
  const comesUpFirst = (a: ArenaPart, b: ArenaPart) => a.first - b.first;
  const goesLast = (a: ArenaPart, b: ArenaPart) => b.last - a.last || comesUpFirst(a, b);
  const [then, atOtherTimes] = partition(bySize, ({ first, last }) => first <= fullest && fullest <= last);
  yield [...then.toSorted(comesUpFirst), ...atOtherTimes];
  yield [...then.toSorted(goesLast), ...atOtherTimes];
  const end = parts.reduce((latest, { last }) => Math.max(latest, last), 0);
  const [stays, goes] = partition(bySize, ({ last }) => last === end);
  yield [...stays.toSorted(comesUpFirst), ...goes];
  yield [...stays.toSorted(comesUpFirst).toReversed(), ...goes.toSorted(goesLast)];
  yield bySize;
}

function partition<T>(list: readonly T[], isMeant: (item: T) => boolean): [T[], T[]] {
  return [list.filter(isMeant), list.filter((item) => !isMeant(item))];
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

function placeInOrder(parts: readonly ArenaPart[]): Map<ArenaPart, PlacedPart> {
  const placed = new Map<ArenaPart, PlacedPart>();
  // In the order of their offsets.
  const lying: PlacedPart[] = [];
  for (const part of parts) {
    const own = { ...part, offset: firstGap(lying, part) };
    placed.set(part, own);
    const after = lying.findIndex(({ offset }) => offset > own.offset);
    lying.splice(after < 0 ? lying.length : after, 0, own);
  }
  return placed;
}

/** Where the first gap begins that takes a part; else the end of those that are needed when it is. */
function firstGap(lying: readonly PlacedPart[], { byteLength, first, last }: ArenaPart): number {
  const bytes = blockBytes(byteLength);
  let end = 0;
  for (const other of lying) {
    if (other.first > last || first > other.last) continue;
    if (other.offset - end >= bytes) return end;
    end = Math.max(end, other.offset + blockBytes(other.byteLength));
  }
  return end;
}
