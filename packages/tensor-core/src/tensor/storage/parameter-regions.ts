import type { Region } from './write-versions.ts';

interface CountedRegion extends Region {
  leaves: number;
}

/** The regions of a storage that are leaves requiring a gradient; a flat buffer has many. */
export class ParameterRegions {
  readonly #byStart = new Map<number, CountedRegion[]>();
  #count = 0;
  /** If there is one region, as nearly always, it is found without a search. */
  #only: CountedRegion | null = null;

  /** The number of regions, counting one of several leaves once. */
  get count(): number {
    return this.#count;
  }

  add({ start, end }: Region): void {
    const known = this.#byStart.get(start)?.find((region) => region.end === end);
    if (known) {
      known.leaves++;
      return;
    }
    const region = { start, end, leaves: 1 };
    const sameStart = this.#byStart.get(start);
    if (sameStart) sameStart.push(region);
    else this.#byStart.set(start, [region]);
    this.#only = ++this.#count === 1 ? region : null;
  }

  remove({ start, end }: Region): void {
    const sameStart = this.#byStart.get(start) ?? [];
    const known = sameStart.find((region) => region.end === end);
    if (!known || --known.leaves > 0) return;
    sameStart.splice(sameStart.indexOf(known), 1);
    if (sameStart.length === 0) this.#byStart.delete(start);
    this.#count--;
    this.#only = this.#count === 1 ? [...this.#byStart.values()][0]![0]! : null;
  }

  /** A region that contains another, preferably one that starts with it; null if there is none. */
  around(inner: Region): Region | null {
    if (this.#only) return contains(this.#only, inner) ? this.#only : null;
    const starting = this.#byStart.get(inner.start)?.find((region) => contains(region, inner));
    if (starting) return starting;
    for (const regions of this.#byStart.values()) {
      const found = regions.find((region) => contains(region, inner));
      if (found) return found;
    }
    return null;
  }
}

function contains(outer: Region, inner: Region): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}
