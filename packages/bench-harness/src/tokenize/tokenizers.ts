import type { ByteLevelPlan } from './byte-level.ts';

/** A part of a text, or of bytes, whose tokens are those of the whole there. */
export interface TextChunk<Content = string | Uint8Array> {
  readonly content: Content;
  /** Whether the text begins with it. */
  readonly isStart: boolean;
}

/** Makes tokens of texts as they are read, and texts of tokens as they are drawn. */
export interface Tokenizer {
  /** What it was read from; null for bytes. */
  readonly file: string | null;
  /** Every token is below it. */
  readonly vocabularySize: number;
  /** The token that ends a text; null where none is known. */
  readonly endOfText: number | null;
  /** What other threads encode by; null where they have to read the tokenizer's file, or, of bytes, for nothing to do. */
  readonly plan: ByteLevelPlan | null;
  /**
   * The text of that name in chunks, or what follows one of them; its bytes come in pieces that may end anywhere. The next piece overwrites a
   * chunk of bytes. Throws a UsageError for bytes that are no text.
   */
  chunksOf(pieces: Iterable<Uint8Array>, name: string, isStart: boolean): Iterable<TextChunk>;
  /** The tokens of a chunk; the next call may overwrite them. */
  tokensOf(chunk: TextChunk): ArrayLike<number>;
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

/** What becomes of the texts. */
export interface TokenizeSettings {
  readonly tokenizer: Tokenizer;
  /** The token after each text; null for none. */
  readonly endOfText: number | null;
}

/** A token is a byte. */
export const bytesTokenizer: Tokenizer = {
  file: null,
  vocabularySize: 256,
  endOfText: null,
  plan: null,
  *chunksOf(pieces, _, isStart) {
    for (const content of pieces) {
      yield { content, isStart };
      isStart = false;
    }
  },
  tokensOf: ({ content }) => content as Uint8Array,
  encode: (text) => [...Buffer.from(text)],
  streamText() {
    const text = new TextDecoder();
    return { push: (token) => text.decode(Uint8Array.of(token), { stream: true }), end: () => text.decode() };
  },
  tokenOf: () => undefined,
  textOf: () => undefined,
};
