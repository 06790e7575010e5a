import { writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { checkCount, checkFunction, checkOptions, checkText, describeValue } from '@roofline/tensor-core';
import { replaceFile } from '../checkpoint/replace-file.ts';
import {
  type TokenFileHeader,
  type TokenFileMetadata,
  TokenFileError,
  dtypeFor,
  encodeHeader,
  encodeMetadata,
  headerBytes,
  maxVocabularySize,
} from './token-file-header.ts';

/** Options of `writeTokens`. */
export interface WriteTokensOptions {
  /** Every token is below it. Up to 65,536 tokens are stored as uint16, else as uint32; at most 2^31. */
  readonly vocabularySize: number;
  /** What the file says of its tokens, to be read as `TokenFile.metadata`. Default nothing. */
  readonly metadata?: TokenFileMetadata;
  /** Called before the first chunk is asked for, where a killed writer of this path had left a part, which is removed. */
  readonly onRestart?: () => void;
}

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
  checkText('writeTokens', 'the path', path);
  if (typeof (chunks as unknown) !== 'object' || typeof chunks?.[Symbol.iterator] !== 'function') {
    throw new TokenFileError(`writeTokens: takes lists of tokens in turn, not ${describeValue(chunks)}.`);
  }
  checkOptions('writeTokens', options, ['vocabularySize', 'metadata', 'onRestart']);
  const { vocabularySize, metadata = {}, onRestart } = options;
  checkCount('writeTokens', 'vocabularySize', vocabularySize, 1);
  if (vocabularySize > maxVocabularySize)
    throw new TokenFileError(
      `writeTokens: vocabularySize ${vocabularySize} is more than 2^31, whose tokens int32 would not hold.`,
    );
  checkMetadata(metadata);
  if (onRestart !== undefined) checkFunction('writeTokens', 'onRestart', onRestart);
  let header: TokenFileHeader | null = null;
  replaceFile(
    path,
    (file, hadLeftovers) => {
      if (hadLeftovers) onRestart?.();
      header = writeChunks(file, chunks, { vocabularySize, metadata });
      if (header.length === 0)
        throw new TokenFileError(`writeTokens: there is no token to write to ${path}.`);
    },
    (reason) => new TokenFileError(`writeTokens: ${reason}`),
  );
  return header!;
}

function writeChunks(
  file: number,
  chunks: Iterable<ArrayLike<number>>,
  { vocabularySize, metadata }: { vocabularySize: number; metadata: TokenFileMetadata },
): TokenFileHeader {
  const dtype = dtypeFor(vocabularySize);
  let [position, length, checksum] = [headerBytes, 0, 0];
  for (const chunk of chunks) {
    checkTokens(chunk, vocabularySize, length);
    const tokens = dtype === 'uint16' ? Uint16Array.from(chunk) : Uint32Array.from(chunk);
    const bytes = new Uint8Array(tokens.buffer);
    checksum = crc32(bytes, checksum);
    position = writeFully(file, bytes, position);
    length += tokens.length;
  }
  const trailer = encodeMetadata(metadata);
  writeFully(file, trailer, position);
  const header = { dtype, vocabularySize, length, checksum, metadataBytes: trailer.length };
  // Last: what has no header yet is no file of tokens under any name.
  writeFully(file, encodeHeader(header), 0);
  return header;
}

function checkMetadata(metadata: TokenFileMetadata): void {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new TokenFileError(`writeTokens: metadata must be texts by name, not ${describeValue(metadata)}.`);
  for (const [name, text] of Object.entries(metadata)) checkText('writeTokens', `metadata.${name}`, text);
}

function checkTokens(chunk: ArrayLike<number>, vocabularySize: number, before: number): void {
  if (!Array.isArray(chunk) && !ArrayBuffer.isView(chunk)) {
    throw new TokenFileError(
      `writeTokens: a chunk must be a list or typed array of tokens, not ${describeValue(chunk)}.`,
    );
  }
  for (let i = 0; i < chunk.length; i++) {
    const token = chunk[i]!;
    if (Number.isInteger(token) && token >= 0 && token < vocabularySize) continue;
    throw new TokenFileError(
      `writeTokens: token ${before + i} is ${describeValue(token)}, not one of 0 to ${vocabularySize - 1}; ` +
        "vocabularySize must be the tokenizer's.",
    );
  }
}

/** Writes all of `bytes`; returns the position after them. */
function writeFully(file: number, bytes: Uint8Array, position: number): number {
  for (let done = 0; done < bytes.length;)
    done += writeSync(file, bytes, done, Math.min(bytes.length - done, 2 ** 30), position + done);
  return position + bytes.length;
}
