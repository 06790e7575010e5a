import { type SizedPart, longestFirst } from './sized-part.ts';

interface Lying extends SizedPart {
  readonly offset: number;
}

/** Offsets of parts, each put into the first gap that is large enough, in their order. */
export function fitIntoGaps(parts: readonly SizedPart[]): Map<SizedPart, number> {
  const offsets = new Map<SizedPart, number>();
  // Sorted by offset.
  const lying: Lying[] = [];
  for (const part of parts) {
    const offset = firstGap(lying, part);
    offsets.set(part, offset);
    const after = lying.findIndex((other) => other.offset > offset);
    lying.splice(after < 0 ? lying.length : after, 0, { ...part, offset });
  }
  return offsets;
}

/** The offset of the first gap that is large enough, or the end of the parts needed at the same time. */
function firstGap(lying: readonly Lying[], { bytes, first, last }: SizedPart): number {
  let end = 0;
  for (const other of lying) {
    if (other.first > last || first > other.last) continue;
    if (other.offset - end >= bytes) return end;
    end = Math.max(end, other.offset + other.bytes);
  }
  return end;
}

/**
 * Orders worth trying: parts needed at the fullest call first, by first or by last use; parts needed until the end first, the
 * others by size or by last use; and all by size.
 */
export function* ordersToFit(parts: readonly SizedPart[], fullest: number): Generator<SizedPart[]> {
  const bySize = parts.toSorted((a, b) => b.bytes - a.bytes || longestFirst(a, b) || a.first - b.first);
  const comesUpFirst = (a: SizedPart, b: SizedPart) => a.first - b.first;
  const goesLast = (a: SizedPart, b: SizedPart) => b.last - a.last || comesUpFirst(a, b);
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
