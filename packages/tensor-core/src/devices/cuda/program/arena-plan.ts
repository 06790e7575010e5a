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
 * other is put into the smallest gap that takes it: in one plan those that are needed at the fullest call first, as they
 * come up, in another the largest first. The shorter arena is taken. To find the shortest of all is NP-hard; those of
 * training steps come within a percent of the bytes that are needed at one time.
 */
export function planArena(parts: readonly ArenaPart[]): PlacedPart[] {
  const { bytes, call } = fullestCall(parts);
  const bySize = parts.toSorted(
    (a, b) => b.byteLength - a.byteLength || b.last - b.first - (a.last - a.first) || a.first - b.first,
  );
  const isNeededThen = ({ first, last }: ArenaPart) => first <= call && call <= last;
  const asTheyComeUp = parts.filter(isNeededThen).toSorted((a, b) => a.first - b.first);
  const fromFullest = [...asTheyComeUp, ...bySize.filter((part) => !isNeededThen(part))];
  let plan = placeInOrder(fromFullest);
  if (arenaBytes(plan.values()) > bytes) {
    const other = placeInOrder(bySize);
    if (arenaBytes(other.values()) < arenaBytes(plan.values())) plan = other;
  }
  return parts.map((part) => plan.get(part)!);
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
    const own = { ...part, offset: smallestGap(lying, part) };
    placed.set(part, own);
    const after = lying.findIndex(({ offset }) => offset > own.offset);
    lying.splice(after < 0 ? lying.length : after, 0, own);
  }
  return placed;
}

/** Where the smallest gap begins that takes a part; else the end of those that are needed when it is. */
function smallestGap(lying: readonly PlacedPart[], { byteLength, first, last }: ArenaPart): number {
  const bytes = blockBytes(byteLength);
  let [end, best, bestBytes] = [0, -1, Infinity];
  for (const other of lying) {
    if (other.first > last || first > other.last) continue;
    const gap = other.offset - end;
    if (gap >= bytes && gap < bestBytes) {
      best = end;
      bestBytes = gap;
    }
    end = Math.max(end, other.offset + blockBytes(other.byteLength));
  }
  return best < 0 ? end : best;
}
