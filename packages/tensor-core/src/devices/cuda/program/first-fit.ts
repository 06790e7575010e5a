import { type Block, longestFirst } from './skyline.ts';

interface Lying extends Block {
  readonly offset: number;
}

/** Where blocks lie if one after the other is put into the first gap that takes it. */
export function fitIntoGaps(blocks: readonly Block[]): Map<Block, number> {
  const offsets = new Map<Block, number>();
  // In the order of their offsets.
  const lying: Lying[] = [];
  for (const block of blocks) {
    const offset = firstGap(lying, block);
    offsets.set(block, offset);
    const after = lying.findIndex((other) => other.offset > offset);
    lying.splice(after < 0 ? lying.length : after, 0, { ...block, offset });
  }
  return offsets;
}

/** Where the first gap begins that takes a block; else the end of those that are needed when it is. */
function firstGap(lying: readonly Lying[], { bytes, first, last }: Block): number {
  let end = 0;
  for (const other of lying) {
    if (other.first > last || first > other.last) continue;
    if (other.offset - end >= bytes) return end;
    end = Math.max(end, other.offset + other.bytes);
  }
  return end;
}

/**
 * Those that are needed at the fullest moment before all others, as they come up or as they go; what stays, with the largest
 * or with what goes last behind it; the largest.
 */
export function* ordersToFit(blocks: readonly Block[], fullest: number): Generator<Block[]> {
  const bySize = blocks.toSorted((a, b) => b.bytes - a.bytes || longestFirst(a, b) || a.first - b.first);
  const comesUpFirst = (a: Block, b: Block) => a.first - b.first;
  const goesLast = (a: Block, b: Block) => b.last - a.last || comesUpFirst(a, b);
  const [then, atOtherTimes] = partition(bySize, ({ first, last }) => first <= fullest && fullest <= last);
  yield [...then.toSorted(comesUpFirst), ...atOtherTimes];
  yield [...then.toSorted(goesLast), ...atOtherTimes];
  const end = blocks.reduce((latest, { last }) => Math.max(latest, last), 0);
  const [stays, goes] = partition(bySize, ({ last }) => last === end);
  yield [...stays.toSorted(comesUpFirst), ...goes];
  yield [...stays.toSorted(comesUpFirst).toReversed(), ...goes.toSorted(goesLast)];
  yield bySize;
}

function partition<T>(list: readonly T[], isMeant: (item: T) => boolean): [T[], T[]] {
  return [list.filter(isMeant), list.filter((item) => !isMeant(item))];
}
