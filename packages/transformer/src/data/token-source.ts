import { crc32 } from 'node:zlib';
import { RooflineError, checkCount, checkFunction, checkText, describeValue } from '@roofline/tensor-core';

/** Tokens in a row, which windows are cut from: a `TokenFile`, `byteTokens` of a text, or a class of one's own. */
export interface TokenSource {
  /** What messages call it, such as a file's path. */
  readonly name: string;
  /** How many tokens there are. */
  readonly length: number;
  /** Every token is below it. */
  readonly vocabularySize: number;
  /** Of other tokens it is another one; a saved place in the data is refused where it differs. */
  readonly fingerprint: string;
  /** Tokens `start` to `start + count`, without the last. */
  read(start: number, count: number): ArrayLike<number>;
}

/**
 * The bytes of a text as tokens in memory, with a vocabulary of 256; a string in UTF-8.
 *
 * @example
 * ```ts
 * import { TokenLoader, byteTokens } from '@roofline/transformer';
 *
 * const loader = new TokenLoader(byteTokens('All that the model reads.'), { batch: 2, contextLength: 8 });
 * console.log(loader.next().ids.shape); // [2, 8]
 * ```
 */
export function byteTokens(text: string | Uint8Array): TokenSource {
  if (!(text instanceof Uint8Array)) checkText('byteTokens', 'the text', text);
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  let fingerprint: string | undefined;
  return {
    name: 'the text',
    length: bytes.length,
    vocabularySize: 256,
    // Only where a place in it is saved; then it takes a pass over all of it, once.
    get fingerprint() {
      return (fingerprint ??= fingerprintOf({
        vocabularySize: 256,
        length: bytes.length,
        checksum: crc32(bytes),
      }));
    },
    read: (start, count) => bytes.subarray(start, start + count),
  };
}

/** Tells tokens from others by their number and the CRC-32 of what holds them. */
export function fingerprintOf(tokens: {
  readonly vocabularySize: number;
  readonly length: number;
  readonly checksum: number;
}): string {
  return `${tokens.length} tokens of ${tokens.vocabularySize}, ${tokens.checksum.toString(16).padStart(8, '0')}`;
}

/** Throws a RooflineError, which names `owner`, unless tokens can be read from `source`. */
export function checkTokenSource(owner: string, source: TokenSource): void {
  if (typeof source !== 'object' || source === null) {
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: reads from a TokenFile, or byteTokens of a text, not ${describeValue(source)}.`,
    );
  }
  checkFunction(owner, 'read of the source', source.read);
  checkText(owner, "the source's name", source.name);
  checkText(owner, "the source's fingerprint", source.fingerprint);
  checkCount(owner, "the source's length", source.length);
  checkCount(owner, "the source's vocabularySize", source.vocabularySize, 1);
}
