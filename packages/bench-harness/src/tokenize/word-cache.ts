const [mostWords, mostUnits, mostTokens] = [2 ** 18, 2 ** 22, 2 ** 21];
const slots = 2 * mostWords;
/** Longer words come again too seldom to be kept. */
const longestKept = 48;

/**
 * The tokens of words, each a part of a text. It is in typed arrays, so that a word that is known costs neither a string nor a list; some
 * 20 MB, and once it is full it begins anew.
 */
export class WordCache {
  /** Numbers of words plus 1, in open addressing. */
  readonly #slots = new Int32Array(slots);
  #words = 0;
  // Of each word: its hash, and where its text and its tokens begin; they end where those of the next begin.
  readonly #hashes = new Int32Array(mostWords);
  readonly #textStarts = new Int32Array(mostWords + 1);
  readonly #tokenStarts = new Int32Array(mostWords + 1);
  readonly #units = new Uint16Array(mostUnits);
  readonly #tokens = new Int32Array(mostTokens);

  /** The number of `text.slice(from, to)`; -1 for one that is not known. */
  find(text: string, from: number, to: number, hash: number): number {
    for (let slot = hash & (slots - 1); ; slot = (slot + 1) & (slots - 1)) {
      const word = this.#slots[slot]! - 1;
      if (word < 0 || (this.#hashes[word] === hash && this.#isText(word, text, from, to))) return word;
    }
  }

  /** How many tokens a word has. */
  countOf(word: number): number {
    return this.#tokenStarts[word + 1]! - this.#tokenStarts[word]!;
  }

  /** Copies the tokens of a word to `out` from `at` on; returns the place after them. */
  copy(word: number, out: Int32Array, at: number): number {
    const end = this.#tokenStarts[word + 1]!;
    for (let i = this.#tokenStarts[word]!; i < end; i++) out[at++] = this.#tokens[i]!;
    return at;
  }

  /** Keeps the tokens of a word that is not known, unless it is long. */
  keep(text: string, from: number, to: number, hash: number, tokens: ArrayLike<number>): void {
    if (to - from > longestKept) return;
    const isFull =
      this.#words === mostWords ||
      this.#textStarts[this.#words]! + longestKept > mostUnits ||
      this.#tokenStarts[this.#words]! + tokens.length > mostTokens;
    if (isFull) this.#clear();
    const word = this.#words++;
    let unit = this.#textStarts[word]!;
    for (let at = from; at < to; at++) this.#units[unit++] = text.charCodeAt(at);
    this.#textStarts[word + 1] = unit;
    const first = this.#tokenStarts[word]!;
    this.#tokens.set(tokens, first);
    this.#tokenStarts[word + 1] = first + tokens.length;
    this.#hashes[word] = hash;
    let slot = hash & (slots - 1);
    while (this.#slots[slot] !== 0) slot = (slot + 1) & (slots - 1);
    this.#slots[slot] = word + 1;
  }

  #isText(word: number, text: string, from: number, to: number): boolean {
    const start = this.#textStarts[word]!;
    if (this.#textStarts[word + 1]! - start !== to - from) return false;
    for (let i = 0; i < to - from; i++)
      if (this.#units[start + i] !== text.charCodeAt(from + i)) return false;
    return true;
  }

  #clear(): void {
    this.#slots.fill(0);
    this.#words = 0;
  }
}

export function hashOf(text: string, from: number, to: number): number {
  let hash = 0;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x9e3779b1);
  return hash ^ (hash >>> 15);
}
