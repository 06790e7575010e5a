import * as tokenizers from '@huggingface/tokenizers';
import { byteCharacters } from './byte-characters.ts';

/** A tokenizer of words by patterns and of merged bytes, as GPT-2, Llama 3 and Qwen have it. Threads may be sent one. */
export interface ByteLevelPlan {
  /** The parts of one are split by the next; what is between matches is a part as well. */
  readonly patterns: readonly RegExp[];
  /** Whether texts are brought to Unicode's form NFC first. */
  readonly isNormalized: boolean;
  /** Tokens that are looked for in a text before all else. */
  readonly added: ReadonlyMap<string, number>;
  /** The token of each byte. */
  readonly bytes: Int32Array;
  /** What is merged, in order of rank: three tokens each, left, right, and what they make. */
  readonly merges: Int32Array;
  /** Tokens by bytes as characters: a word among them is not merged from bytes. Null where all are. */
  readonly words: ReadonlyMap<string, number> | null;
}

/** Of a tokenizer.json, what is read here. */
interface TokenizerJson {
  readonly normalizer: { readonly type: string } | null;
  readonly pre_tokenizer: PreTokenizerJson | null;
  readonly model: {
    readonly type?: string;
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (string | readonly [string, string])[];
    readonly ignore_merges?: boolean;
    readonly end_of_word_suffix?: string | null;
    readonly continuing_subword_prefix?: string | null;
    readonly continuing_subword_suffix?: string | null;
  };
  readonly added_tokens: readonly AddedTokenJson[];
}
interface AddedTokenJson {
  readonly id: number;
  readonly content: string;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
  readonly special?: boolean;
  readonly normalized?: boolean;
}
interface PreTokenizerJson {
  readonly type: string;
  readonly pretokenizers?: readonly PreTokenizerJson[];
  readonly pattern?: { readonly Regex?: string };
  readonly behavior?: string;
  readonly invert?: boolean;
  readonly add_prefix_space?: boolean;
  readonly use_regex?: boolean;
}
interface ConfigJson {
  readonly remove_space?: boolean;
  readonly do_lowercase_and_remove_accent?: boolean;
}

/** What is used of the library; its declarations name files in a way that only bundlers find. */
const { ByteLevelPreTokenizer, DigitsPreTokenizer, SplitPreTokenizer } = tokenizers as unknown as Readonly<
  Record<
    'ByteLevelPreTokenizer' | 'DigitsPreTokenizer' | 'SplitPreTokenizer',
    new (config: object) => { readonly pattern: RegExp | null }
  >
>;

const mostMerges = 2 ** 22;

/** The plan of a tokenizer; null for one that asks for anything else. `vocabulary` gives the tokens of texts. */
export function byteLevelPlan(
  json: object,
  config: object,
  vocabulary: ReadonlyMap<string, number>,
): ByteLevelPlan | null {
  const { normalizer, pre_tokenizer: splits, model, added_tokens: added } = json as TokenizerJson;
  const { remove_space: removes, do_lowercase_and_remove_accent: lowers } = config as ConfigJson;
  if (removes === true || lowers === true || model.type !== 'BPE') return null;
  if (normalizer !== null && normalizer.type !== 'NFC') return null;
  if (added.some((token) => isStretched(token, normalizer !== null))) return null;
  const patterns = patternsOf(splits);
  const merges = mergesOf(model, vocabulary);
  const bytes = Int32Array.from({ length: 256 }, (_, byte) => vocabulary.get(byteCharacters[byte]!) ?? -1);
  if (patterns === null || merges === null || bytes.includes(-1)) return null;
  return {
    ...{ patterns, bytes, merges, isNormalized: normalizer !== null },
    added: new Map(added.map(({ content, id }) => [content, id])),
    words: model.ignore_merges === true ? vocabulary : null,
  };
}

/** Whether a token takes blanks around it along, or is looked for in normalized text. */
function isStretched(token: AddedTokenJson, hasNormalizer: boolean): boolean {
  const { lstrip, rstrip, special = false, normalized = !special, content } = token;
  return lstrip === true || rstrip === true || (normalized && hasNormalizer) || content === '';
}

/** Null for splits that are not by pattern alone, or not of bytes in the end. */
function patternsOf(splits: PreTokenizerJson | null): RegExp[] | null {
  const all = splits?.type === 'Sequence' ? (splits.pretokenizers ?? []) : [splits];
  const last = all.at(-1);
  if (last?.type !== 'ByteLevel' || last.add_prefix_space === true) return null;
  const patterns = all.slice(0, -1).map((split) => (split === null ? null : patternOf(split)));
  if (last.use_regex !== false) patterns.push(new ByteLevelPreTokenizer({ ...last }).pattern);
  if (patterns.length === 0) return null;
  return patterns.every((pattern) => pattern instanceof RegExp) ? patterns : null;
}

/** The library's, which has rewritten what JavaScript writes otherwise. */
function patternOf(split: PreTokenizerJson): RegExp | null {
  const { type, pattern, behavior, invert } = split;
  if (type === 'Digits') return new DigitsPreTokenizer({ ...split }).pattern;
  if (type !== 'Split' || pattern?.Regex === undefined || behavior !== 'Isolated' || invert === true)
    return null;
  return new SplitPreTokenizer({ ...split, invert: false }).pattern;
}

/** Null where a merge is of texts or makes one that are no tokens, or where words have marks at their ends. */
function mergesOf(model: TokenizerJson['model'], vocabulary: ReadonlyMap<string, number>): Int32Array | null {
  const { merges, end_of_word_suffix: end, continuing_subword_prefix: prefix } = model;
  if (end || prefix || model.continuing_subword_suffix || merges.length > mostMerges) return null;
  const tokens = new Int32Array(3 * merges.length);
  for (const [rank, merge] of merges.entries()) {
    const [left, right] = typeof merge === 'string' ? (merge.split(' ', 2) as [string, string]) : merge;
    const [a, b, ab] = [left, right, left + right].map((text) => vocabulary.get(text));
    if (a === undefined || b === undefined || ab === undefined) return null;
    tokens.set([a, b, ab], 3 * rank);
  }
  return tokens;
}
