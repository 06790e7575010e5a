/** Makes tokens of texts as they are read. */
export interface Tokenizer {
  /** Every token is below it. */
  readonly vocabularySize: number;
  /** The tokens of one text, whose bytes come in pieces that may end anywhere; the next one overwrites each. */
  tokensOf(pieces: Iterable<Uint8Array>): Iterable<ArrayLike<number>>;
}

/** Those of `--tokenizer`, by name. */
const tokenizers = {
  bytes: { vocabularySize: 256, tokensOf: (pieces) => pieces },
} as const satisfies Readonly<Record<string, Tokenizer>>;

export type TokenizerName = keyof typeof tokenizers;
export const tokenizerNames = Object.keys(tokenizers) as TokenizerName[];

export function tokenizerOf(name: TokenizerName): Tokenizer {
  return tokenizers[name];
}
