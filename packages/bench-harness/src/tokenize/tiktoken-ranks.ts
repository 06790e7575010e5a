import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { UsageError } from '../errors.ts';
import { charactersOf } from './byte-characters.ts';

/** What a file of ranks does not hold: how its tokenizer splits a text, and its special tokens. */
interface Encoding {
  readonly pattern: string;
  readonly specialTokens: Readonly<Record<string, number>>;
}

const words = String.raw`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const contraction = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)`;
const numbersAndBlanks = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;

/** As OpenAI's tiktoken defines them, by the names of their files. */
const encodings: Readonly<Record<string, Encoding>> = {
  r50k_base: { pattern: words, specialTokens: { '<|endoftext|>': 50_256 } },
  p50k_base: { pattern: words, specialTokens: { '<|endoftext|>': 50_256 } },
  cl100k_base: {
    pattern: String.raw`${contraction}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|${numbersAndBlanks}`,
    specialTokens: {
      ...{ '<|endoftext|>': 100_257, '<|fim_prefix|>': 100_258, '<|fim_middle|>': 100_259 },
      ...{ '<|fim_suffix|>': 100_260, '<|endofprompt|>': 100_276 },
    },
  },
  o200k_base: {
    pattern:
      String.raw`[^\r\n\p{L}\p{N}]?${upper}*${lower}+${contraction}?|[^\r\n\p{L}\p{N}]?${upper}+${lower}*${contraction}?|` +
      String.raw`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${numbersAndBlanks}`,
    specialTokens: { '<|endoftext|>': 199_999, '<|endofprompt|>': 200_018 },
  },
};

/** The token that ends a text. */
export const tiktokenEndOfText = '<|endoftext|>';

/**
 * A file of tiktoken's ranks as a tokenizer.json: every pair of tokens that make another one is a merge, in the order of what they
 * make. Throws a UsageError for a file that is none, or whose name is none of tiktoken's.
 */
export function tokenizerOfRanks(path: string): object {
  const name = basename(path, '.tiktoken');
  const encoding = encodings[name];
  if (encoding === undefined) {
    throw new UsageError(
      `--tokenizer ${path}: a file of ranks does not say how texts are split, its name does: ` +
        `${Object.keys(encodings).join(', ')} are known, ${name} is not. Make a tokenizer.json of it.`,
    );
  }
  const vocab = readRanks(path);
  return {
    added_tokens: Object.entries(encoding.specialTokens).map(([content, id]) => ({
      ...{ id, content, special: true, normalized: false },
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: encoding.pattern }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', vocab: Object.fromEntries(vocab), merges: mergesOf(vocab), ignore_merges: true },
  };
}

/** Tokens and their ranks. */
function readRanks(path: string): Map<string, number> {
  const lines = readFileSync(path, 'utf8').split('\n');
  const ranks = new Map<string, number>();
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const [, token, rank] = /^([A-Za-z0-9+/]+={0,2}) (\d+)\s*$/.exec(line) ?? [];
    if (token === undefined)
      throw new UsageError(
        `--tokenizer ${path}: line ${index + 1} is not a token in Base64 and its rank; the file is none of tiktoken's.`,
      );
    ranks.set(charactersOf(Buffer.from(token, 'base64')), Number(rank));
  }
  if (ranks.size === 0) throw new UsageError(`--tokenizer ${path} is empty.`);
  return ranks;
}

function mergesOf(ranks: ReadonlyMap<string, number>): (readonly [string, string])[] {
  const tokens = [...ranks.keys()].sort((a, b) => ranks.get(a)! - ranks.get(b)!);
  const rankOf = (pair: readonly [string, string]) => [ranks.get(pair[0])!, ranks.get(pair[1])!] as const;
  return tokens.flatMap((token) => {
    const pairs = Array.from({ length: token.length - 1 }, (_, i) => {
      return [token.slice(0, i + 1), token.slice(i + 1)] as const;
    }).filter(([left, right]) => ranks.has(left) && ranks.has(right));
    return pairs.sort((a, b) => rankOf(a)[0] - rankOf(b)[0] || rankOf(a)[1] - rankOf(b)[1]);
  });
}
