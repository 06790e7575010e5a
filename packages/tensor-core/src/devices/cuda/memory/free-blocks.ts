import type { Block } from './block.ts';

/** The free blocks of one size: a stack, linked through the blocks so that any can leave at once. */
interface SizeClass {
  readonly size: number;
  top: Block | null;
}

/**
 * Free blocks by size. The exact size is one map look-up, which is what a training loop asks for again and
 * again; else the smallest that is large enough is found by bisection over the sizes ever seen.
 */
export class FreeBlocks {
  readonly #classes = new Map<number, SizeClass>();
  /** All classes, ascending; emptied ones stay until there are too many. */
  #ascending: SizeClass[] = [];
  #nonEmpty = 0;

  add(block: Block): void {
    let sizeClass = this.#classes.get(block.size);
    if (!sizeClass) {
      sizeClass = { size: block.size, top: null };
      this.#insert(sizeClass);
    }
    const { top } = sizeClass;
    if (top) top.freeAbove = block;
    else this.#nonEmpty++;
    block.freeAbove = null;
    block.freeBelow = top;
    sizeClass.top = block;
  }

  remove(block: Block): void {
    const { freeAbove, freeBelow } = block;
    if (freeBelow) freeBelow.freeAbove = freeAbove;
    if (freeAbove) {
      freeAbove.freeBelow = freeBelow;
    } else {
      this.#classes.get(block.size)!.top = freeBelow;
      if (!freeBelow) this.#nonEmpty--;
    }
    block.freeAbove = null;
    block.freeBelow = null;
  }

  /** Takes out the smallest block of at least `size`; null if there is none. */
  takeBest(size: number): Block | null {
    const best = this.#classes.get(size)?.top ?? this.#smallestAbove(size);
    if (best) this.remove(best);
    return best;
  }

  *[Symbol.iterator](): Iterator<Block> {
    for (const { top } of this.#ascending) {
      for (let block = top; block; block = block.freeBelow) yield block;
    }
  }

  #smallestAbove(size: number): Block | null {
    for (let i = this.#firstAtLeast(size); i < this.#ascending.length; i++) {
      const { top } = this.#ascending[i]!;
      if (top) return top;
    }
    return null;
  }

  #insert(sizeClass: SizeClass): void {
    if (this.#ascending.length > 64 + 2 * this.#nonEmpty) this.#dropEmpty();
    this.#classes.set(sizeClass.size, sizeClass);
    this.#ascending.splice(this.#firstAtLeast(sizeClass.size), 0, sizeClass);
  }

  #dropEmpty(): void {
    for (const { size, top } of this.#ascending) if (!top) this.#classes.delete(size);
    this.#ascending = this.#ascending.filter(({ top }) => top !== null);
  }

  #firstAtLeast(size: number): number {
    let [low, high] = [0, this.#ascending.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ascending[middle]!.size < size) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
