import { type JointTime, nextWriteTime } from './write-time.ts';

/** A part of a storage, in bytes from its start: `start` included, `end` not. */
export interface Region {
  readonly start: number;
  readonly end: number;
}

interface WrittenRegion extends Region {
  /** When it was written. */
  readonly time: number;
}

/** A region that is always written together with others elsewhere, and their joint time. */
interface JointRegion {
  readonly region: Region;
  readonly write: JointTime;
}

/**
 * When each region of a storage was last written, so that backward can tell whether what it saved has changed: a write to one
 * slice of a flat buffer does not concern other slices. Regions do not overlap and are sorted.
 */
export class WriteVersions {
  /** The time of the last write, other than joint ones. */
  #last = 0;
  /** The time of the last write to the whole storage. */
  #whole = 0;
  #regions: WrittenRegion[] = [];
  #joint: JointRegion[] = [];

  /** The time of the last write; 0 if there was none. */
  get version(): number {
    return this.#joint.reduce((version, { write }) => Math.max(version, write.time), this.#last);
  }

  recordWhole(): void {
    this.#last = this.#whole = nextWriteTime();
    if (this.#regions.length > 0) this.#regions = [];
  }

  record(region: Region): void {
    this.#recordAt(region, nextWriteTime());
  }

  /** Counts each time that `write` is noted as a write of `region`. */
  join(write: JointTime, region: Region): void {
    if (region.start < region.end) this.#joint.push({ region, write });
  }

  /** Records the last time of `write`, and no later ones. */
  leave(write: JointTime): void {
    const left = this.#joint.filter((joint) => joint.write === write);
    this.#joint = this.#joint.filter((joint) => joint.write !== write);
    if (write.time === 0) return;
    for (const { region } of left) this.#recordAt(region, write.time);
  }

  /** Whether a byte of the region was written after `version`. */
  writtenSince(version: number, region: Region): boolean {
    const { start, end } = region;
    if (start >= end) return false;
    if (this.#whole > version) return true;
    if (this.#joint.some((joint) => joint.write.time > version && doOverlap(joint.region, region)))
      return true;
    if (this.#last <= version) return false;
    for (let i = this.#firstEndingAfter(start); i < this.#regions.length; i++) {
      const written = this.#regions[i]!;
      if (written.start >= end) return false;
      if (written.time > version) return true;
    }
    return false;
  }

  /** Leaves later times as they are. */
  #recordAt({ start, end }: Region, time: number): void {
    this.#last = Math.max(this.#last, time);
    if (start >= end || this.#whole > time) return;
    const regions = this.#regions;
    const first = this.#firstEndingAfter(start);
    const replaced: WrittenRegion[] = [];
    let from = start;
    let last = first;
    for (; last < regions.length && regions[last]!.start < end; last++) {
      const region = regions[last]!;
      if (region.time > time) {
        if (from < region.start) replaced.push({ start: from, end: region.start, time });
        replaced.push(region);
        from = region.end;
        continue;
      }
      if (region.start < start) replaced.push({ ...region, end: start });
      if (region.end > end) replaced.push({ ...region, start: end });
    }
    if (from < end) replaced.push({ start: from, end, time });
    replaced.sort((a, b) => a.start - b.start);
    regions.splice(first, last - first, ...replaced);
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

function doOverlap(a: Region, b: Region): boolean {
  return a.start < b.end && b.start < a.end;
}
