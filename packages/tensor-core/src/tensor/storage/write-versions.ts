/** A part of a storage, in bytes from its start: `start` included, `end` not. */
export interface Region {
  readonly start: number;
  readonly end: number;
}

interface WrittenRegion {
  start: number;
  end: number;
  version: number;
}

/**
 * When each region of a storage was written last, so that backward can tell whether what it saved has changed: one
 * write of a flat buffer's slice says nothing of the slices beside it. Regions do not overlap and are in order.
 */
export class WriteVersions {
  #version = 0;
  /** Of the last write to the whole storage. */
  #whole = 0;
  #regions: WrittenRegion[] = [];

  /** Counts all writes. */
  get version(): number {
    return this.#version;
  }

  recordWhole(): void {
    this.#whole = ++this.#version;
    if (this.#regions.length > 0) this.#regions = [];
  }

  record({ start, end }: Region): void {
    const version = ++this.#version;
    if (start >= end) return;
    const regions = this.#regions;
    const first = this.#firstEndingAfter(start);
    const same = regions[first];
    if (same && same.start === start && same.end === end) {
      same.version = version;
      return;
    }
    const replaced: WrittenRegion[] = [];
    let last = first;
    for (; last < regions.length && regions[last]!.start < end; last++) {
      const region = regions[last]!;
      if (region.start < start) replaced.push({ ...region, end: start });
      if (region.end > end) replaced.push({ ...region, start: end });
    }
    replaced.push({ start, end, version });
    replaced.sort((a, b) => a.start - b.start);
    regions.splice(first, last - first, ...replaced);
  }

  /** Whether a byte of the region was written after `version` writes. */
  writtenSince(version: number, { start, end }: Region): boolean {
    if (this.#version === version || start >= end) return false;
    if (this.#whole > version) return true;
    for (let i = this.#firstEndingAfter(start); i < this.#regions.length; i++) {
      const region = this.#regions[i]!;
      if (region.start >= end) return false;
      if (region.version > version) return true;
    }
    return false;
  }

  #firstEndingAfter(position: number): number {
    let [low, high] = [0, this.#regions.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#regions[middle]!.end <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
