import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { UsageError } from '../errors.ts';
import { ByteLevelEncoder } from './byte-level-encoder.ts';
import { type ByteLevelPlan, byteLevelPlan } from './byte-level.ts';
import { chunksOfText } from './text-chunks.ts';
import { type Encode, findCuts } from './text-cuts.ts';
import type { TextStream, Tokenizer } from './tokenizers.ts';
import { WordEncoder } from './word-encoder.ts';

/** What a tokenizer is made of: tokenizer.json, tokenizer_config.json, and the text of the token that ends a text. */
export interface TokenizerParts {
  readonly file: string;
  readonly json: object;
  readonly config: object;
  readonly endOfText: string | null;
}

/** What is used of the library's tokenizer; its own declarations name files in a way that only bundlers find. */
interface Library {
  encode(text: string, options: { readonly add_special_tokens: boolean }): { readonly ids: number[] };
  decode(
    tokens: number[],
    options: { readonly skip_special_tokens: boolean; readonly clean_up_tokenization_spaces: boolean },
  ): string;
  token_to_id(token: string): number | undefined;
  id_to_token(id: number): string | undefined;
  get_vocab(withAdded?: boolean): Map<string, number>;
  get_added_tokens_decoder(): Map<number, { readonly content: string }>;
}

/** A tokenizer of Hugging Face's. Throws a UsageError that names the file for one that the library cannot read. */
export function libraryTokenizer({ file, json, config, endOfText }: TokenizerParts): Tokenizer {
  let library: Library;
  try {
    library = new HuggingFaceTokenizer(json, config) as Library;
  } catch (cause) {
    throw new UsageError(`--tokenizer ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  const encode = (text: string) => library.encode(text, { add_special_tokens: false }).ids;
  const ids = [...library.get_vocab().values()];
  const vocabularySize = ids.reduce((most, id) => Math.max(most, id + 1), 0);
  const cuts = once(() => findCuts(encode, ...textsOf(library)));
  const plan = once(() => checkedPlan(byteLevelPlan(json, config, library.get_vocab()), encode));
  const encoder = once(() => {
    const byPlan = plan();
    return byPlan === null ? new WordEncoder(encode, cuts()) : new ByteLevelEncoder(byPlan);
  });
  return {
    ...{ file, vocabularySize },
    endOfText: endOfText === null ? null : (library.token_to_id(endOfText) ?? null),
    get plan() {
      return plan();
    },
    chunksOf: (pieces, name, isStart) => chunksOfText(textOf(pieces, name), cuts(), isStart),
    tokensOf: ({ content, isStart }) => encoder().encode(content as string, isStart),
    encode: (text, { begins = false } = {}) => library.encode(text, { add_special_tokens: begins }).ids,
    streamText: (before) => new DecodedText((tokens) => decode(library, tokens), before),
    tokenOf: (text) => library.token_to_id(text),
    textOf: (token) => library.id_to_token(token),
  };
}

/** A function that makes something at its first call, and gives that each time. */
function once<Made>(make: () => Made): () => Made {
  let made: { readonly it: Made } | undefined;
  return () => (made ??= { it: make() }).it;
}

/** The plan, if it gives the library's tokens of a text that has something of everything. */
function checkedPlan(plan: ByteLevelPlan | null, encode: Encode): ByteLevelPlan | null {
  if (plan === null) return null;
  const text = [probe, ...plan.added.keys(), probe].join('');
  return String([...new ByteLevelEncoder(plan).encode(text)]) === String(encode(text)) ? plan : null;
}

const probe =
  "It's 1234567 words, isn't it?\r\n\n  e\u0301 größe\u00a0日本語 \u1100\u1161 हिन्दी 👩‍👩‍👧 x_y(z);\t\t\u2126 DON'T  \n camelCase ... \u212a \u0000 ";

function decode(library: Library, tokens: readonly number[]): string {
  // A model may draw ids that only fill up its vocabulary.
  const known = tokens.filter((token) => library.id_to_token(token) !== undefined);
  if (known.length === 0) return '';
  return library.decode(known, { skip_special_tokens: true, clean_up_tokenization_spaces: false });
}

/** The texts of the vocabulary, and of those that are looked for in a text before all else. */
function textsOf(library: Library): [vocabulary: string[], added: string[]] {
  const added = library.get_added_tokens_decoder();
  const ids = [...library.get_vocab(false).values()].filter((id) => !added.has(id));
  return [ids.map((id) => decode(library, [id])), [...added.values()].map(({ content }) => content)];
}

/** Bytes as text. Throws a UsageError for what is no UTF-8. */
function* textOf(pieces: Iterable<Uint8Array>, name: string): Generator<string> {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    for (const piece of pieces) yield text.decode(piece, { stream: true });
    yield text.decode();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new UsageError(
      `${name} is no UTF-8, which --tokenizer wants: convert it, by \`iconv -f LATIN1 -t UTF-8\` say, or leave out --tokenizer, which ` +
        'makes each byte a token.',
      { cause },
    );
  }
}

/**
 * The text of tokens as they come. Decoders know no state, so each time the few tokens before are decoded as well: what a token
 * adds depends on them, and as long as the text ends within a character its tokens wait for the next.
 */
class DecodedText implements TextStream {
  readonly #decode: (tokens: readonly number[]) => string;
  /** The last tokens given out, and those that wait. */
  #given: readonly number[];
  #waiting: number[] = [];

  constructor(decodeTokens: (tokens: readonly number[]) => string, before: readonly number[]) {
    this.#decode = decodeTokens;
    this.#given = before;
  }

  push(token: number): string {
    this.#waiting.push(token);
    const added = this.#added();
    if (added === '' || added.endsWith('\ufffd')) return '';
    [this.#given, this.#waiting] = [this.#waiting, []];
    return added;
  }

  end(): string {
    return this.#added();
  }

  #added(): string {
    const before = this.#decode(this.#given);
    return this.#decode([...this.#given, ...this.#waiting]).slice(before.length);
  }
}
