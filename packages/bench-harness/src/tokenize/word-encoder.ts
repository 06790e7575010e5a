import { type Encode, type TextCuts, placeOf } from './text-cuts.ts';
import { WordTokens } from './word-tokens.ts';

/**
 * Encodes by a library texts that are cut into words where `cuts` allows that: the tokens of a word are kept, because most words come again.
 * Without cuts a text is encoded as a whole.
 */
export class WordEncoder {
  readonly #cuts: TextCuts | null;
  readonly #words: WordTokens;

  constructor(encode: Encode, cuts: TextCuts | null) {
    this.#cuts = cuts;
    this.#words = new WordTokens(encode);
  }

  /** The tokens of a text, or of what follows a cut in one, in an array that the next call overwrites. */
  encode(text: string, isStart: boolean): Int32Array {
    this.#words.clear();
    const from = this.#cuts === null ? 0 : this.#encodeWords(text, isStart, this.#cuts);
    this.#encodeWord(text, from, text.length, isStart);
    return this.#words.tokens;
  }

  /** Encodes all of `text` before its last cut, and gives that place. */
  #encodeWords(text: string, isStart: boolean, { classes, table }: TextCuts): number {
    const classAt = (index: number) => classes[text.charCodeAt(index)]!;
    let from = 0;
    // What precedes a part that has been cut off ends a word or a line.
    let [before, last, next] = [classAt(0), classAt(0), classAt(1)];
    for (let at = 1; at < text.length - 1; at++) {
      const after = classAt(at + 1);
      if (table[placeOf(before, last, next, after)] === 1) {
        this.#encodeWord(text, from, at, isStart);
        from = at;
      }
      [before, last, next] = [last, next, after];
    }
    return from;
  }

  #encodeWord(text: string, from: number, to: number, isStart: boolean): void {
    const isFirst = isStart && from === 0;
    const drops = this.#cuts?.dropsSpace === true && !isFirst && text[from] === ' ';
    this.#words.addWord(text, drops ? from + 1 : from, to);
  }
}
