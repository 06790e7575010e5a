import { type SizedPart, longestFirst } from './sized-part.ts';

/** Neighbouring calls at which the parts so far reach the same height. */
interface Plateau {
  readonly first: number;
  readonly last: number;
  readonly height: number;
}

/**
 * Offsets of parts by a skyline heuristic: onto the lowest plateau goes, of the parts that fit, the one needed last; a plateau
 * onto which none fits is filled up to its lower neighbour. Parts needed at the same time do not overlap. (The best-fit of
 * Burke, Kendall and Whitwell, "A New Placement Heuristic for the Orthogonal Stock-Cutting Problem", 2004, for parts whose
 * place in one direction is given.)
 */
export function stackParts(parts: readonly SizedPart[]): Map<SizedPart, number> {
  const heights = new Map<SizedPart, number>();
  const waiting = parts.toSorted((a, b) => b.last - a.last || longestFirst(a, b));
  const skyline = new Skyline(parts);
  while (waiting.length > 0) {
    const { first, last, height } = skyline.lowest;
    const chosen = waiting.findIndex((part) => first <= part.first && part.last <= last);
    if (chosen < 0) {
      skyline.fillUp();
      continue;
    }
    const [part] = waiting.splice(chosen, 1) as [SizedPart];
    heights.set(part, height);
    skyline.put(part);
  }
  return heights;
}

/** The height of the parts so far, by call. */
class Skyline {
  /** In the order of calls; neighbours differ in height. */
  readonly #plateaus: Plateau[];
  #lowest = 0;

  /** Empty, and as wide as the parts need. */
  constructor(parts: readonly SizedPart[]) {
    const first = parts.reduce((least, part) => Math.min(least, part.first), Infinity);
    const last = parts.reduce((most, part) => Math.max(most, part.last), -Infinity);
    this.#plateaus = [{ first, last, height: 0 }];
  }

  get lowest(): Plateau {
    return this.#plateaus[this.#lowest]!;
  }

  /** Puts a part onto the lowest plateau, which must span its calls. */
  put({ bytes, first, last }: SizedPart): void {
    const under = this.lowest;
    const plateaus = [
      { ...under, last: first - 1 },
      { first, last, height: under.height + bytes },
      { ...under, first: last + 1 },
    ];
    this.#replaceLowest(plateaus.filter((plateau) => plateau.first <= plateau.last));
  }

  /** Raises the lowest plateau to its lower neighbour; the memory in between stays unused. */
  fillUp(): void {
    const heightAt = (place: number) => this.#plateaus[place]?.height ?? Infinity;
    const height = Math.min(heightAt(this.#lowest - 1), heightAt(this.#lowest + 1));
    this.#replaceLowest([{ ...this.lowest, height }]);
  }

  #replaceLowest(others: readonly Plateau[]): void {
    const plateaus = this.#plateaus;
    const from = Math.max(0, this.#lowest - 1);
    const around = [plateaus[this.#lowest - 1], ...others, plateaus[this.#lowest + 1]];
    const merged: Plateau[] = [];
    for (const plateau of around) {
      if (plateau === undefined) continue;
      const before = merged.at(-1);
      if (before?.height === plateau.height) merged.splice(-1, 1, { ...before, last: plateau.last });
      else merged.push(plateau);
    }
    plateaus.splice(from, this.#lowest + 2 - from, ...merged);
    this.#lowest = plateaus.reduce((best, { height }, i) => (height < plateaus[best]!.height ? i : best), 0);
  }
}
