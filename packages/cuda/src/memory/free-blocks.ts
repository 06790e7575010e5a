import type { Block } from './block.ts';

/**
 * Free blocks by size. Those of one size are a stack, linked through the blocks so that any can leave at once. Merging
 * leaves few sizes at a time, which stand in order: the smallest that is large enough is found by bisection.
 */
export class FreeBlocks {
  /** The top of each stack, sizes ascending. */
  readonly #tops: Block[] = [];

  add(block: Block): void {
    const index = this.#firstAtLeast(block.size);
    const below = this.#tops[index];
    if (below?.size === block.size) {
      block.freeBelow = below;
      below.freeAbove = block;
      this.#tops[index] = block;
    } else {
      this.#insert(index, block);
    }
  }

  remove(block: Block): void {
    const { freeAbove, freeBelow } = block;
    if (freeAbove === null) {
      this.#takeTop(this.#firstAtLeast(block.size), block);
      return;
    }
    freeAbove.freeBelow = freeBelow;
    if (freeBelow) freeBelow.freeAbove = freeAbove;
    block.freeAbove = null;
    block.freeBelow = null;
  }

  /** Takes out the smallest block of at least `size`; null if there is none. */
  takeBest(size: number): Block | null {
    const index = this.#firstAtLeast(size);
    const best = this.#tops[index];
    if (!best) return null;
    this.#takeTop(index, best);
    return best;
  }

  *[Symbol.iterator](): Iterator<Block> {
    for (const top of this.#tops) {
      for (let block: Block | null = top; block; block = block.freeBelow) yield block;
    }
  }

  #takeTop(index: number, top: Block): void {
    const { freeBelow } = top;
    if (freeBelow) {
      freeBelow.freeAbove = null;
      this.#tops[index] = freeBelow;
      top.freeBelow = null;
    } else {
      this.#removeAt(index);
    }
  }

  // By hand: splice would make an array for each call.
  #insert(index: number, block: Block): void {
    const tops = this.#tops;
    tops.push(block);
    for (let i = tops.length - 1; i > index; i--) tops[i] = tops[i - 1]!;
    tops[index] = block;
  }

  #removeAt(index: number): void {
    const tops = this.#tops;
    for (let i = index + 1; i < tops.length; i++) tops[i - 1] = tops[i]!;
    tops.pop();
  }

  #firstAtLeast(size: number): number {
    const tops = this.#tops;
    let low = 0;
    let high = tops.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (tops[middle]!.size < size) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
