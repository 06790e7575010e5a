import { checkOptions, describeValue } from '@roofline/tensor-core';
import { type TokenFileHeader, TokenFileError } from './token-file-header.ts';
import { TokenFileWriter, type TokenFileWriterOptions } from './token-file-writer.ts';

/** Options of `writeTokens`. */
export type WriteTokensOptions = Omit<TokenFileWriterOptions, 'job'>;

/**
 * Writes a file of tokens, chunk by chunk as `chunks` gives them: lists or typed arrays of whole numbers. It appears under its
 * name when all of it is on the disk; a process or machine that stops meanwhile leaves the file before, and the next call
 * for this path removes the part, except on Windows and on file systems without locks. Returns what its header says. Throws a
 * TokenFileError for a token beyond the vocabulary, no token at all, or a path that is no regular file, and what `chunks`
 * and the file system throw; a file that was there is then as it was.
 *
 * @example
 * ```ts
 * import { TokenFile, writeTokens } from '@roofline/transformer';
 *
 * writeTokens('data.bin', [[1, 2, 3], [70_000]], { vocabularySize: 100_000 });
 * const file = new TokenFile('data.bin');
 * console.log(file.read(2, 2)); // Uint32Array [3, 70000]
 * file.close();
 * ```
 */
export function writeTokens(
  path: string,
  chunks: Iterable<ArrayLike<number>>,
  options: WriteTokensOptions,
): TokenFileHeader {
  if (typeof (chunks as unknown) !== 'object' || typeof chunks?.[Symbol.iterator] !== 'function') {
    throw new TokenFileError(`writeTokens: takes lists of tokens in turn, not ${describeValue(chunks)}.`);
  }
  checkOptions('writeTokens', options, ['vocabularySize', 'metadata']);
  using writer = new TokenFileWriter(path, options);
  for (const chunk of chunks) writer.append(chunk);
  return writer.finish();
}
