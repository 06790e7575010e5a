/** Merges pairs of tokens, the pair of lowest rank first and the leftmost of these, until no pair is a merge: byte pair encoding. */
export class PairMerger {
  /** By pair, in open addressing: left, right, rank, and what they make; left is -1 where there is none. */
  readonly #table: Int32Array;
  readonly #mask: number;
  readonly #queue = new Queue();
  // Of each place: its token, the rank of it and the next, and the places around it.
  #tokens = new Int32Array(64);
  #ranks = new Int32Array(64);
  #next = new Int32Array(64);
  #previous = new Int32Array(64);

  /** `merges` are three tokens each, left, right and merged, in order of rank. Of two of the same pair the later one counts. */
  constructor(merges: Int32Array) {
    const count = merges.length / 3;
    const slots = 2 ** Math.ceil(Math.log2(2 * count + 2));
    this.#mask = slots - 1;
    this.#table = new Int32Array(4 * slots).fill(-1);
    for (let rank = 0; rank < count; rank++) {
      const [left, right] = [merges[3 * rank]!, merges[3 * rank + 1]!];
      const slot = this.#slotOf(left, right);
      this.#table[slot] = left;
      this.#table[slot + 1] = right;
      this.#table[slot + 2] = rank;
      this.#table[slot + 3] = merges[3 * rank + 2]!;
    }
  }

  /** Replaces the first `count` tokens by what they merge to; returns how many those are. */
  merge(tokens: Int32Array, count: number): number {
    if (count < 2) return count;
    this.#begin(tokens, count);
    const [queue, ranks, next] = [this.#queue, this.#ranks, this.#next];
    for (let key = queue.pop(); key >= 0; key = queue.pop()) {
      const place = key % places;
      // It has been merged meanwhile, or one next to it has.
      if (ranks[place] !== Math.floor(key / places)) continue;
      this.#mergeAt(place);
    }
    let done = 0;
    for (let place = 0; place >= 0; place = next[place]!) tokens[done++] = this.#tokens[place]!;
    return done;
  }

  #begin(tokens: Int32Array, count: number): void {
    if (count > this.#tokens.length) {
      const room = 2 * count;
      [this.#tokens, this.#ranks] = [new Int32Array(room), new Int32Array(room)];
      [this.#next, this.#previous] = [new Int32Array(room), new Int32Array(room)];
    }
    for (let place = 0; place < count; place++) {
      this.#tokens[place] = tokens[place]!;
      this.#previous[place] = place - 1;
      this.#next[place] = place + 1 < count ? place + 1 : -1;
    }
    for (let place = 0; place < count; place++) this.#rank(place);
  }

  #mergeAt(place: number): void {
    const [next, previous] = [this.#next, this.#previous];
    const gone = next[place]!;
    const after = next[gone]!;
    this.#tokens[place] = this.#table[this.#slotOf(this.#tokens[place]!, this.#tokens[gone]!) + 3]!;
    this.#ranks[gone] = -1;
    next[place] = after;
    if (after >= 0) previous[after] = place;
    this.#rank(place);
    const before = previous[place]!;
    if (before >= 0) this.#rank(before);
  }

  /** Finds the rank of a place and the next, and puts it into the queue. */
  #rank(place: number): void {
    const next = this.#next[place]!;
    const rank = next < 0 ? -1 : this.#table[this.#slotOf(this.#tokens[place]!, this.#tokens[next]!) + 2]!;
    this.#ranks[place] = rank;
    if (rank >= 0) this.#queue.push(rank * places + place);
  }

  /** Where a pair stands, or would. */
  #slotOf(left: number, right: number): number {
    const table = this.#table;
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    for (hash ^= hash >>> 15; ; hash++) {
      const slot = 4 * (hash & this.#mask);
      if (table[slot] === -1 || (table[slot] === left && table[slot + 1] === right)) return slot;
    }
  }
}

/** More than any text has; a rank times it is exact. */
const places = 2 ** 31;

/** A binary heap of numbers, the least first. */
class Queue {
  #keys = new Float64Array(64);
  #size = 0;

  push(key: number): void {
    if (this.#size === this.#keys.length) {
      const larger = new Float64Array(2 * this.#size);
      larger.set(this.#keys);
      this.#keys = larger;
    }
    const keys = this.#keys;
    let at = this.#size++;
    for (let above = (at - 1) >> 1; at > 0 && keys[above]! > key; above = (at - 1) >> 1) {
      keys[at] = keys[above]!;
      at = above;
    }
    keys[at] = key;
  }

  /** -1 once it is empty. */
  pop(): number {
    if (this.#size === 0) return -1;
    const keys = this.#keys;
    const [first, last, size] = [keys[0]!, keys[--this.#size]!, this.#size];
    let at = 0;
    for (let below = 1; below < size; below = 2 * at + 1) {
      if (below + 1 < size && keys[below + 1]! < keys[below]!) below++;
      if (keys[below]! >= last) break;
      keys[at] = keys[below]!;
      at = below;
    }
    keys[at] = last;
    return first;
  }
}
