import { WordCache, hashOf } from './word-cache.ts';

/** Collects the tokens of a text, word by word: `encode` is asked for those of words that have not come before, or are long. */
export class WordTokens {
  readonly #encode: (word: string) => ArrayLike<number>;
  readonly #cache = new WordCache();
  #tokens = new Int32Array(2 ** 16);
  #length = 0;

  constructor(encode: (word: string) => ArrayLike<number>) {
    this.#encode = encode;
  }

  /** Begins another text. */
  clear(): void {
    this.#length = 0;
  }

  /** Adds those of the word `text.slice(from, to)`. */
  addWord(text: string, from: number, to: number): void {
    const hash = hashOf(text, from, to);
    const word = this.#cache.find(text, from, to, hash);
    if (word >= 0) {
      this.#makeRoom(this.#cache.countOf(word));
      this.#length = this.#cache.copy(word, this.#tokens, this.#length);
      return;
    }
    const encoded = this.#encode(text.slice(from, to));
    this.#cache.keep(text, from, to, hash, encoded);
    this.#makeRoom(encoded.length);
    this.#tokens.set(encoded, this.#length);
    this.#length += encoded.length;
  }

  addToken(token: number): void {
    this.#makeRoom(1);
    this.#tokens[this.#length++] = token;
  }

  /** All that were added, in an array that those of the next text overwrite. */
  get tokens(): Int32Array {
    return this.#tokens.subarray(0, this.#length);
  }

  #makeRoom(count: number): void {
    if (this.#length + count <= this.#tokens.length) return;
    const larger = new Int32Array(2 * (this.#length + count));
    larger.set(this.#tokens);
    this.#tokens = larger;
  }
}
