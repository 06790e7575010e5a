import { type Encode, type TextCuts, placeOf } from './text-cuts.ts';

/** Longer parts come again too seldom to be kept. */
const longestKept = 32;
const mostKept = 2 ** 18;

/**
 * Tokens of texts that come in pieces, the same as of each whole text: it is cut into words where `cuts` allows that, and the tokens of
 * words are kept, because most come again. Without cuts a text is encoded as a whole.
 */
export class TextEncoderInParts {
  readonly #encode: Encode;
  readonly #cuts: TextCuts | null;
  readonly #kept = new Map<string, readonly number[]>();

  constructor(encode: Encode, cuts: TextCuts | null) {
    this.#encode = encode;
    this.#cuts = cuts;
  }

  *tokensOf(pieces: Iterable<string>): Generator<number[]> {
    let [rest, isStart] = ['', true];
    for (const piece of pieces) {
      rest += piece;
      const tokens: number[] = [];
      const done = this.#encodeWords(rest, isStart, tokens);
      rest = rest.slice(done);
      isStart &&= done === 0;
      if (tokens.length > 0) yield tokens;
    }
    if (rest === '') return;
    const last: number[] = [];
    this.#encodeWord(rest, isStart, last);
    yield last;
  }

  /** Encodes all of `text` before its last cut, and gives that place. */
  #encodeWords(text: string, isStart: boolean, tokens: number[]): number {
    if (this.#cuts === null) return 0;
    const { classes, table } = this.#cuts;
    const classAt = (index: number) => classes[text.charCodeAt(index)]!;
    let from = 0;
    // What precedes a part that has been cut off ends a word or a line.
    let [before, last, next] = [classAt(0), classAt(0), classAt(1)];
    for (let at = 1; at < text.length - 1; at++) {
      const after = classAt(at + 1);
      if (table[placeOf(before, last, next, after)] === 1) {
        this.#encodeWord(text.slice(from, at), isStart && from === 0, tokens);
        from = at;
      }
      [before, last, next] = [last, next, after];
    }
    return from;
  }

  #encodeWord(word: string, isStart: boolean, tokens: number[]): void {
    const drops = this.#cuts?.dropsSpace === true && !isStart && word.startsWith(' ');
    const dropped = drops ? word.slice(1) : word;
    let encoded = this.#kept.get(dropped);
    if (encoded === undefined) {
      encoded = this.#encode(dropped);
      if (dropped.length <= longestKept) this.#keep(dropped, encoded);
    }
    for (const token of encoded) tokens.push(token);
  }

  #keep(word: string, tokens: readonly number[]): void {
    if (this.#kept.size === mostKept) this.#kept.clear();
    // A part of a string keeps all of it; a copy does not.
    this.#kept.set(Buffer.from(word, 'utf16le').toString('utf16le'), tokens);
  }
}
