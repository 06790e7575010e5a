import type { ByteLevelPlan } from './byte-level.ts';
import { charactersOf } from './byte-characters.ts';
import { PairMerger } from './merge-bytes.ts';
import { WordTokens } from './word-tokens.ts';

/** Encodes as a plan says; words that have been encoded before are looked up. */
export class ByteLevelEncoder {
  readonly #plan: ByteLevelPlan;
  readonly #splitters: readonly Splitter[];
  readonly #added: RegExp | null;
  readonly #merger: PairMerger;
  readonly #words = new WordTokens((word) => this.#encodeWord(word));
  readonly #utf8 = new TextEncoder();

  constructor(plan: ByteLevelPlan) {
    this.#plan = plan;
    this.#splitters = plan.patterns.map((pattern) => new Splitter(pattern));
    this.#added = patternOf([...plan.added.keys()]);
    this.#merger = new PairMerger(plan.merges);
  }

  /** The tokens of a text, in an array that the next call overwrites. */
  encode(text: string): Int32Array {
    this.#words.clear();
    let from = 0;
    for (const match of this.#added === null ? [] : text.matchAll(this.#added)) {
      this.#encodeSection(text.slice(from, match.index));
      this.#words.addToken(this.#plan.added.get(match[0])!);
      from = match.index + match[0].length;
    }
    this.#encodeSection(from === 0 ? text : text.slice(from));
    return this.#words.tokens;
  }

  /** A text without added tokens, unless it becomes one as it is normalized. */
  #encodeSection(text: string): void {
    const section = this.#plan.isNormalized ? text.normalize('NFC') : text;
    const added = this.#plan.added.get(section);
    if (added !== undefined) this.#words.addToken(added);
    else this.#split(section, 0);
  }

  #split(text: string, level: number): void {
    const splitter = this.#splitters[level]!;
    const isLast = level === this.#splitters.length - 1;
    for (let from = 0, to = 0; from < text.length; from = to) {
      to = splitter.endOf(text, from);
      if (isLast) this.#words.addWord(text, from, to);
      else this.#split(text.slice(from, to), level + 1);
    }
  }

  #encodeWord(word: string): ArrayLike<number> {
    const bytes = this.#utf8.encode(word);
    const whole = this.#plan.words?.get(charactersOf(bytes));
    if (whole !== undefined) return [whole];
    const tokens = new Int32Array(bytes.length);
    for (let i = 0; i < bytes.length; i++) tokens[i] = this.#plan.bytes[bytes[i]!]!;
    return tokens.subarray(0, this.#merger.merge(tokens, tokens.length));
  }
}

/** Finds where parts of a text end: matches of a pattern, and what is between them. */
class Splitter {
  readonly #sticky: RegExp;
  readonly #global: RegExp;

  constructor({ source, flags }: RegExp) {
    const others = flags.replaceAll(/[gy]/g, '');
    this.#sticky = new RegExp(source, `${others}y`);
    this.#global = new RegExp(source, `${others}g`);
  }

  endOf(text: string, from: number): number {
    const sticky = this.#sticky;
    sticky.lastIndex = from;
    if (sticky.test(text) && sticky.lastIndex > from) return sticky.lastIndex;
    this.#global.lastIndex = from;
    for (let match = this.#global.exec(text); match !== null; match = this.#global.exec(text)) {
      if (match.index > from) return match.index;
      // It matches nothing here.
      this.#global.lastIndex += text.codePointAt(from)! > 0xffff ? 2 : 1;
    }
    return text.length;
  }
}

/** Finds the longest of several texts, at the first place where there is any; null for none. */
function patternOf(texts: readonly string[]): RegExp | null {
  if (texts.length === 0) return null;
  const sorted = texts.toSorted((a, b) => b.length - a.length);
  return new RegExp(sorted.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), 'g');
}
