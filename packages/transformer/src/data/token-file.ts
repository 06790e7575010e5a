import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { RooflineError, checkCount, checkText } from '@roofline/tensor-core';
import {
  type TokenDType,
  type TokenFileHeader,
  type TokenFileMetadata,
  TokenFileError,
  beginsTokenFile,
  bytesPerToken,
  decodeHeader,
  decodeMetadata,
  headerBytes,
} from './token-file-header.ts';
import { type TokenSource, fingerprintOf } from './token-source.ts';

/**
 * A file of tokens that is open for reading, as `writeTokens` and `roofline tokenize` write it: 64 bytes of header, then uint16 or
 * uint32 tokens, little-endian, then what is to be said of them. It may be larger than memory, of which only what is read takes any. Dispose it, or close it.
 */
// By positioned reads, as safetensors are: a window takes one system call, its tokens are widened to int32 and so copied in any
// case, and a file that is cut off meanwhile is an error here, where it would kill a process that had it mapped.
export class TokenFile implements TokenSource {
  readonly name: string;
  readonly dtype: TokenDType;
  readonly vocabularySize: number;
  readonly length: number;
  readonly fingerprint: string;
  /** What was given to `writeTokens` as metadata; empty if nothing was. */
  readonly metadata: TokenFileMetadata;
  readonly #openedAs: string;
  /** Null once it is closed: its number may then be that of another file. */
  #file: number | null;

  /** Reads and checks the header and the metadata alone. Throws a TokenFileError that names what is wrong with the file. */
  constructor(path: string) {
    checkText('TokenFile', 'the path', path);
    this.name = path;
    this.#file = openToRead(path);
    try {
      const header = readHeader(path, this.#file);
      this.dtype = header.dtype;
      this.vocabularySize = header.vocabularySize;
      this.length = header.length;
      this.fingerprint = fingerprintOf(header);
      this.metadata = readMetadata(path, this.#file, header);
      this.#openedAs = versionOf(this.#file);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * `count` tokens from `start` on, in an array of their own. Throws a RooflineError (code RANGE) for places beyond the file, and
   * a TokenFileError once the file is closed, when it was changed after it had been opened, and for a token that is not of the
   * vocabulary.
   */
  read(start: number, count: number): Uint16Array<ArrayBuffer> | Uint32Array<ArrayBuffer> {
    checkCount('TokenFile.read', 'start', start);
    checkCount('TokenFile.read', 'count', count);
    const file = this.#file;
    if (file === null)
      throw new TokenFileError(`TokenFile.read: ${this.name} has been closed; open it anew.`);
    if (start + count > this.length) {
      throw new RooflineError(
        'RANGE',
        `TokenFile.read: tokens ${start} to ${start + count} lie beyond the ${this.length} of ${this.name}.`,
      );
    }
    const tokens = this.dtype === 'uint16' ? new Uint16Array(count) : new Uint32Array(count);
    const position = headerBytes + start * bytesPerToken[this.dtype];
    const isWhole = readFully(file, new Uint8Array(tokens.buffer), position);
    if (!isWhole || versionOf(file) !== this.#openedAs) {
      throw new TokenFileError(
        `${this.name} was changed while it was read. Leave it as it is during a training: write another file, or, by ` +
          'writeTokens or `roofline tokenize`, a whole new one in its place.',
      );
    }
    this.#checkVocabulary(tokens, start);
    return tokens;
  }

  /** On a GPU it would be read from beyond the table of embeddings. */
  #checkVocabulary(tokens: Uint16Array | Uint32Array, start: number): void {
    const { vocabularySize } = this;
    const index = tokens.findIndex((token) => token >= vocabularySize);
    if (index < 0) return;
    throw new TokenFileError(
      `${this.name}: token ${start + index} is ${tokens[index]}, beyond its vocabulary of ${vocabularySize}: the file is ` +
        'damaged. Write it anew.',
    );
  }

  /** Closing twice is harmless. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Whether a file begins as a file of tokens does, whole or not. Throws a TokenFileError where it cannot be opened. */
export function isTokenFile(path: string): boolean {
  checkText('isTokenFile', 'the path', path);
  const file = openToRead(path);
  try {
    const first = new Uint8Array(headerBytes);
    readFully(file, first, 0);
    return beginsTokenFile(first);
  } finally {
    closeSync(file);
  }
}

function openToRead(path: string): number {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    throw new TokenFileError(`${path} cannot be opened: ${(cause as Error).message}.`, { cause });
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new TokenFileError(`${path} is no regular file; name a file of tokens.`);
}

function readHeader(path: string, file: number): TokenFileHeader {
  const { size } = fstatSync(file);
  const first = new Uint8Array(Math.min(size, headerBytes));
  readFully(file, first, 0);
  return decodeHeader(path, first, size);
}

function readMetadata(path: string, file: number, header: TokenFileHeader): TokenFileMetadata {
  const bytes = new Uint8Array(header.metadataBytes);
  readFully(file, bytes, headerBytes + header.length * bytesPerToken[header.dtype]);
  return decodeMetadata(path, bytes);
}

/** Changes when a file's bytes or its length do. */
function versionOf(file: number): string {
  const { size, mtimeNs } = fstatSync(file, { bigint: true });
  return `${size} ${mtimeNs}`;
}

/** Whether the file had as many bytes; one system call moves at most 2 GiB. */
function readFully(file: number, bytes: Uint8Array, position: number): boolean {
  for (let done = 0; done < bytes.length;) {
    const count = readSync(file, bytes, done, Math.min(bytes.length - done, 2 ** 30), position + done);
    if (count === 0) return false;
    done += count;
  }
  return true;
}
