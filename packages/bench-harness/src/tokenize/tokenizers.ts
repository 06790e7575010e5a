/** Makes tokens of texts as they are read, and texts of tokens as they are drawn. */
export interface Tokenizer {
  /** What it was read from; null for bytes. */
  readonly file: string | null;
  /** Every token is below it. */
  readonly vocabularySize: number;
  /** The token that ends a text; null where none is known. */
  readonly endOfText: number | null;
  /**
   * The tokens of the text of that name, whose bytes come in pieces that may end anywhere; the next one overwrites each. Throws a
   * UsageError for bytes that are no text.
   */
  tokensOf(pieces: Iterable<Uint8Array>, name: string): Iterable<ArrayLike<number>>;
  /** The tokens of a prompt; `begins` puts in front what a text of this tokenizer begins with, where that is something. */
  encode(text: string, options?: { readonly begins?: boolean }): number[];
  /** Gives the texts of tokens one by one, which follow those of a prompt. */
  streamText(before: readonly number[]): TextStream;
  /** The token whose text this is, as that of special ones; undefined where there is none. */
  tokenOf(text: string): number | undefined;
  /** The text by which `tokenOf` finds a token. */
  textOf(token: number): string | undefined;
}

/** Characters may be of several tokens: they come with the last of these. */
export interface TextStream {
  push(token: number): string;
  /** What is left when no token follows. */
  end(): string;
}

/** A token is a byte. */
export const bytesTokenizer: Tokenizer = {
  file: null,
  vocabularySize: 256,
  endOfText: null,
  tokensOf: (pieces) => pieces,
  encode: (text) => [...Buffer.from(text)],
  streamText() {
    const text = new TextDecoder();
    return { push: (token) => text.decode(Uint8Array.of(token), { stream: true }), end: () => text.decode() };
  },
  tokenOf: () => undefined,
  textOf: () => undefined,
};
