/** A block that is needed from one moment to another, both included, and so lies over a stretch of the skyline. */
export interface Block {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

/** Moments at which the blocks so far reach equally high, between others at which they do not. */
interface Plateau {
  readonly first: number;
  readonly last: number;
  readonly height: number;
}

/** Of two blocks the one that is needed longer; of those the larger. */
export function longestFirst(a: Block, b: Block): number {
  return b.last - b.first - (a.last - a.first) || b.bytes - a.bytes;
}

/**
 * How high each block lies where one after the other is put onto the lowest plateau that there is, of those that fit the one
 * that is needed last; a plateau that takes none is filled up to its lower neighbour. Blocks that are needed at one time lie
 * apart. (After the best-fit of Burke, Kendall and Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting
 * Problem", 2004, for blocks whose place in one direction is given.)
 */
export function stackBlocks(blocks: readonly Block[]): Map<Block, number> {
  const heights = new Map<Block, number>();
  const waiting = blocks.toSorted((a, b) => b.last - a.last || longestFirst(a, b));
  const skyline = new Skyline(blocks);
  while (waiting.length > 0) {
    const { first, last, height } = skyline.lowest;
    const chosen = waiting.findIndex((block) => first <= block.first && block.last <= last);
    if (chosen < 0) {
      skyline.fillUp();
      continue;
    }
    const [block] = waiting.splice(chosen, 1) as [Block];
    heights.set(block, height);
    skyline.put(block);
  }
  return heights;
}

/** How high the blocks so far reach, moment by moment. */
class Skyline {
  /** One behind the other, no two neighbours equally high. */
  readonly #plateaus: Plateau[];
  #lowest = 0;

  /** An empty one, as wide as the blocks need it. */
  constructor(blocks: readonly Block[]) {
    const first = blocks.reduce((least, block) => Math.min(least, block.first), Infinity);
    const last = blocks.reduce((most, block) => Math.max(most, block.last), -Infinity);
    this.#plateaus = [{ first, last, height: 0 }];
  }

  get lowest(): Plateau {
    return this.#plateaus[this.#lowest]!;
  }

  /** Puts a block onto the lowest plateau, within which it must lie. */
  put({ bytes, first, last }: Block): void {
    const under = this.lowest;
    const parts = [
      { ...under, last: first - 1 },
      { first, last, height: under.height + bytes },
      { ...under, first: last + 1 },
    ];
    this.#replaceLowest(parts.filter((part) => part.first <= part.last));
  }

  /** Gives up what lies below the lower neighbour of the lowest plateau. */
  fillUp(): void {
    const heightAt = (place: number) => this.#plateaus[place]?.height ?? Infinity;
    const height = Math.min(heightAt(this.#lowest - 1), heightAt(this.#lowest + 1));
    this.#replaceLowest([{ ...this.lowest, height }]);
  }

  #replaceLowest(parts: readonly Plateau[]): void {
    const plateaus = this.#plateaus;
    const from = Math.max(0, this.#lowest - 1);
    const around = [plateaus[this.#lowest - 1], ...parts, plateaus[this.#lowest + 1]];
    const merged: Plateau[] = [];
    for (const part of around) {
      if (part === undefined) continue;
      const before = merged.at(-1);
      if (before?.height === part.height) merged.splice(-1, 1, { ...before, last: part.last });
      else merged.push(part);
    }
    plateaus.splice(from, Math.min(this.#lowest + 2, plateaus.length) - from, ...merged);
    this.#lowest = plateaus.reduce((best, { height }, i) => (height < plateaus[best]!.height ? i : best), 0);
  }
}
