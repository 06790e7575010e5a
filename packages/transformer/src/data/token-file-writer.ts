import { fdatasyncSync, fstatSync, ftruncateSync, readSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { checkCount, checkOptions, checkText, describeValue } from '@roofline/tensor-core';
import { FileReplacement, type Leftovers } from '../checkpoint/replace-file.ts';
import {
  type TokenDType,
  type TokenFileHeader,
  type TokenFileMetadata,
  TokenFileError,
  bytesPerToken,
  dtypeFor,
  encodeHeader,
  encodeMetadata,
  headerBytes,
  maxVocabularySize,
} from './token-file-header.ts';
import { decodeProgress, digestOf, encodeProgress } from './token-file-progress.ts';

/** Options of `TokenFileWriter`. */
export interface TokenFileWriterOptions {
  /** Every token is below it. Up to 65,536 tokens are stored as uint16, else as uint32; at most 2^31. */
  readonly vocabularySize: number;
  /** What the file says of its tokens, to be read as `TokenFile.metadata`. Default nothing. */
  readonly metadata?: TokenFileMetadata;
  /** What the tokens are made of and how, in any words: a writer that was killed is gone on with where all of it is the same. */
  readonly job?: string;
}

/** How errors name it. */
const named = 'TokenFileWriter';
const pieceBytes = 4 * 2 ** 20;
/** The disk is waited for at most so often, and for at most this part of the time. */
const leastMsBetweenSaves = 100;
const shareOfSaves = 0.05;

/**
 * Writes a file of tokens, list by list. It appears under its name by `finish`, when all of it is on the disk; disposed before, or when its
 * process or machine stops, it leaves the file that was there. With a `job` it goes on with what a process that was killed has left, from the
 * place that was last given to `save`, except on Windows and on file systems without locks.
 *
 * @example
 * ```ts
 * import { TokenFileWriter } from '@roofline/transformer';
 *
 * const texts = ['one', 'two', 'three'];
 * using writer = new TokenFileWriter('data.bin', { vocabularySize: 256, job: texts.join() });
 * for (let i = writer.place; i < texts.length; i++) {
 *   writer.append(Buffer.from(texts[i]!));
 *   writer.save(i + 1);
 * }
 * console.log(writer.finish().length); // 11
 * ```
 */
export class TokenFileWriter {
  readonly path: string;
  readonly vocabularySize: number;
  readonly dtype: TokenDType;
  /** Where to go on: what was last given to `save` by the process that was killed; 0 at the beginning. */
  readonly place: number;
  /** What became of what killed processes left of this file: `adopted` if this goes on with it, `removed` if it begins anew. */
  readonly leftovers: Leftovers;
  readonly #metadata: TokenFileMetadata;
  readonly #job: Uint8Array | null;
  readonly #replacement: FileReplacement;
  #length = 0;
  #checksum = 0;
  #nextSaveMs = performance.now() + leastMsBetweenSaves;

  /** Throws a TokenFileError for a path that is no regular file, and what the file system throws. */
  constructor(path: string, options: TokenFileWriterOptions) {
    checkText(named, 'the path', path);
    checkOptions(named, options, ['vocabularySize', 'metadata', 'job']);
    const { vocabularySize, metadata = {}, job } = options;
    checkVocabularySize(vocabularySize);
    checkMetadata(metadata);
    if (job !== undefined) checkText(named, 'job', job);
    [this.path, this.vocabularySize, this.dtype] = [path, vocabularySize, dtypeFor(vocabularySize)];
    this.#metadata = metadata;
    this.#job = job === undefined ? null : digestOf([job, vocabularySize, metadata]);
    let place = 0;
    this.#replacement = new FileReplacement(
      path,
      (reason) => new TokenFileError(`${named}: ${reason}`),
      (file) => {
        const found = this.#adopt(file);
        place = found ?? 0;
        return found !== null;
      },
    );
    this.place = place;
    this.leftovers = this.#replacement.leftovers;
  }

  /** Writes tokens after those that are there. Throws a TokenFileError for what is no token of the vocabulary. */
  append(tokens: ArrayLike<number>): void {
    checkTokens(tokens, this.vocabularySize, this.#length);
    const stored = this.dtype === 'uint16' ? Uint16Array.from(tokens) : Uint32Array.from(tokens);
    const bytes = new Uint8Array(stored.buffer);
    writeFully(this.#replacement.file, bytes, this.#end);
    this.#checksum = crc32(bytes, this.#checksum);
    this.#length += stored.length;
  }

  /**
   * Says that all that comes before a place of the caller's is appended, so that a writer of the same job may begin there. It does so now
   * and then, so that waiting for the disk takes little of the time. Throws a TokenFileError without a job.
   */
  save(place: number): void {
    checkCount(`${named}.save`, 'place', place);
    if (this.#job === null)
      throw new TokenFileError(
        `${named}.save: a place is saved for a job; name it in the options of ${this.path}.`,
      );
    const beginMs = performance.now();
    if (beginMs < this.#nextSaveMs) return;
    // What it tells of must be there whenever it is.
    fdatasyncSync(this.#replacement.file);
    const [job, length, checksum] = [this.#job, this.#length, this.#checksum];
    writeFully(this.#replacement.file, encodeProgress({ job, length, checksum, place }), 0);
    const endMs = performance.now();
    this.#nextSaveMs = endMs + Math.max(leastMsBetweenSaves, (endMs - beginMs) / shareOfSaves);
  }

  /** Gives the file its name; returns what its header says. Throws a TokenFileError where there is no token. */
  finish(): TokenFileHeader {
    if (this.#length === 0) throw new TokenFileError(`${named}: there is no token to write to ${this.path}.`);
    const { dtype, vocabularySize } = this;
    const { file } = this.#replacement;
    const trailer = encodeMetadata(this.#metadata);
    writeFully(file, trailer, this.#end);
    // As long as this takes, a process that is killed can be gone on with.
    fdatasyncSync(file);
    const [length, checksum] = [this.#length, this.#checksum];
    const header = { dtype, vocabularySize, length, checksum, metadataBytes: trailer.length };
    // What has no header yet is no file of tokens under any name.
    writeFully(file, encodeHeader(header), 0);
    this.#replacement.commit();
    return header;
  }

  /** Removes what is written, unless it is finished. */
  [Symbol.dispose](): void {
    this.#replacement[Symbol.dispose]();
  }

  get #end(): number {
    return headerBytes + this.#length * bytesPerToken[this.dtype];
  }

  /** The place from which to go on with a file that a killed process has left; null where its tokens are not those of this job. */
  #adopt(file: number): number | null {
    const first = new Uint8Array(headerBytes);
    const progress = readSync(file, first, 0, headerBytes, 0) === headerBytes ? decodeProgress(first) : null;
    if (progress === null || this.#job === null || !this.#job.every((byte, i) => byte === progress.job[i]))
      return null;
    const end = headerBytes + progress.length * bytesPerToken[this.dtype];
    if (fstatSync(file).size < end || checksumOf(file, end) !== progress.checksum) return null;
    // What was written after the last save.
    ftruncateSync(file, end);
    [this.#length, this.#checksum] = [progress.length, progress.checksum];
    return progress.place;
  }
}

/** CRC-32 of all after the header and before `end`. */
function checksumOf(file: number, end: number): number {
  const piece = new Uint8Array(pieceBytes);
  let checksum = 0;
  for (let at = headerBytes; at < end;) {
    const count = readSync(file, piece, 0, Math.min(pieceBytes, end - at), at);
    if (count === 0) break;
    checksum = crc32(piece.subarray(0, count), checksum);
    at += count;
  }
  return checksum;
}

function checkVocabularySize(vocabularySize: number): void {
  checkCount(named, 'vocabularySize', vocabularySize, 1);
  if (vocabularySize > maxVocabularySize)
    throw new TokenFileError(
      `${named}: vocabularySize ${vocabularySize} is more than 2^31, whose tokens int32 would not hold.`,
    );
}

function checkMetadata(metadata: TokenFileMetadata): void {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new TokenFileError(`${named}: metadata must be texts by name, not ${describeValue(metadata)}.`);
  for (const [name, text] of Object.entries(metadata)) checkText(named, `metadata.${name}`, text);
}

function checkTokens(tokens: ArrayLike<number>, vocabularySize: number, before: number): void {
  if (!Array.isArray(tokens) && (!ArrayBuffer.isView(tokens) || (tokens as unknown) instanceof DataView)) {
    throw new TokenFileError(`${named}: tokens must be a list or typed array, not ${describeValue(tokens)}.`);
  }
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (Number.isInteger(token) && token >= 0 && token < vocabularySize) continue;
    throw new TokenFileError(
      `${named}: token ${before + i} is ${describeValue(token)}, not one of 0 to ${vocabularySize - 1}; ` +
        "vocabularySize must be the tokenizer's.",
    );
  }
}

/** Writes all of `bytes`. */
function writeFully(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;)
    done += writeSync(file, bytes, done, Math.min(bytes.length - done, 2 ** 30), position + done);
}
