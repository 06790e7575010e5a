import { crc32 } from 'node:zlib';
import { RooflineError } from '@roofline/tensor-core';

/** A file of tokens that is damaged, was changed, or is none; and tokens of which none can be made. */
export class TokenFileError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('TOKEN_FILE', message, options);
  }
}

/** How a token is stored: unsigned and little-endian. */
export type TokenDType = 'uint16' | 'uint32';

/** What the header of a file of tokens says. */
export interface TokenFileHeader {
  readonly dtype: TokenDType;
  /** Every token is below it. At most 2^31, so that tokens are int32 on a device. */
  readonly vocabularySize: number;
  /** How many tokens the file holds. */
  readonly length: number;
  /** CRC-32 of the tokens' bytes, by which two files are told apart. */
  readonly checksum: number;
  /** How many bytes after the tokens say where they come from. */
  readonly metadataBytes: number;
}

/** What a file says of its tokens, such as the tokenizer that they come from. */
export type TokenFileMetadata = Readonly<Record<string, string>>;

/** The tokens begin after so many bytes. */
export const headerBytes = 64;
export const bytesPerToken: Readonly<Record<TokenDType, number>> = { uint16: 2, uint32: 4 };
/** A line end and a zero, which a transfer as text would change. */
const magic = Buffer.from('RTOKEN\n\0', 'latin1');
const version = 1;
const remedy = 'Write it anew, by `roofline tokenize TEXT --out FILE.bin` or writeTokens.';
/** Where each field lies; the checksum of all before it is the last one, and zeros fill the rest. */
const at = {
  version: 8,
  bytesPerToken: 12,
  vocabularySize: 16,
  metadataBytes: 20,
  length: 24,
  checksum: 32,
  headerChecksum: 36,
};

/** Larger ones have tokens that int32 does not hold. */
export const maxVocabularySize = 2 ** 31;

/** The smallest dtype that holds all tokens of a vocabulary. */
export function dtypeFor(vocabularySize: number): TokenDType {
  return vocabularySize <= 2 ** 16 ? 'uint16' : 'uint32';
}

/** The first bytes of a file of tokens. */
export function encodeHeader(header: TokenFileHeader): Uint8Array {
  const { dtype, vocabularySize, length, checksum, metadataBytes } = header;
  const bytes = Buffer.alloc(headerBytes);
  magic.copy(bytes);
  bytes.writeUInt32LE(version, at.version);
  bytes.writeUInt32LE(bytesPerToken[dtype], at.bytesPerToken);
  bytes.writeUInt32LE(vocabularySize, at.vocabularySize);
  bytes.writeUInt32LE(metadataBytes, at.metadataBytes);
  bytes.writeBigUInt64LE(BigInt(length), at.length);
  bytes.writeUInt32LE(checksum, at.checksum);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, at.headerChecksum)), at.headerChecksum);
  return bytes;
}

/** Whether these are the first bytes of a file of tokens, whole or not. */
export function beginsTokenFile(first: Uint8Array): boolean {
  return magic.equals(first.subarray(0, magic.length));
}

/** Reads and checks a header. Throws a TokenFileError that names the file and the first thing wrong. */
export function decodeHeader(file: string, first: Uint8Array, fileBytes: number): TokenFileHeader {
  if (!beginsTokenFile(first)) throw new TokenFileError(`${file} is no file of tokens. ${remedy}`);
  if (first.length < headerBytes) throw cutOff(file, headerBytes, fileBytes);
  const bytes = Buffer.from(first.buffer, first.byteOffset, headerBytes);
  if (crc32(bytes.subarray(0, at.headerChecksum)) !== bytes.readUInt32LE(at.headerChecksum))
    throw new TokenFileError(`${file}: its header is damaged, its checksum is another one. ${remedy}`);
  const written = bytes.readUInt32LE(at.version);
  if (written !== version) {
    throw new TokenFileError(
      `${file} is a file of tokens of version ${written}; this release reads version ${version}. ${remedy}`,
    );
  }
  const width = bytes.readUInt32LE(at.bytesPerToken);
  const dtype = width === bytesPerToken.uint16 ? 'uint16' : 'uint32';
  const vocabularySize = bytes.readUInt32LE(at.vocabularySize);
  if (width !== bytesPerToken[dtype] || vocabularySize > maxVocabularySize) {
    throw new TokenFileError(
      `${file}: tokens of ${width} bytes of a vocabulary of ${vocabularySize}; there are those of 2 or 4 bytes, of at most ` +
        `2^31. ${remedy}`,
    );
  }
  const length = Number(bytes.readBigUInt64LE(at.length));
  const metadataBytes = bytes.readUInt32LE(at.metadataBytes);
  const expected = headerBytes + length * bytesPerToken[dtype] + metadataBytes;
  if (fileBytes < expected) throw cutOff(file, expected, fileBytes);
  if (fileBytes > expected) {
    throw new TokenFileError(
      `${file} has ${fileBytes} bytes, more than the ${expected} of its ${length} tokens. ${remedy}`,
    );
  }
  return { dtype, vocabularySize, length, checksum: bytes.readUInt32LE(at.checksum), metadataBytes };
}

/** The bytes after the tokens: JSON, and its CRC-32. None where there is nothing to say. */
export function encodeMetadata(metadata: TokenFileMetadata): Uint8Array {
  if (Object.keys(metadata).length === 0) return new Uint8Array(0);
  const text = Buffer.from(JSON.stringify(metadata));
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(text));
  return Buffer.concat([text, checksum]);
}

/** Throws a TokenFileError that names the file for bytes that `encodeMetadata` did not make. */
export function decodeMetadata(file: string, bytes: Uint8Array): TokenFileMetadata {
  if (bytes.length === 0) return {};
  const text = Buffer.from(bytes.subarray(0, -4));
  if (bytes.length > 4 && crc32(text) === Buffer.from(bytes.slice(-4)).readUInt32LE())
    return JSON.parse(text.toString()) as TokenFileMetadata;
  throw new TokenFileError(`${file}: what it says of its tokens is damaged. ${remedy}`);
}

function cutOff(file: string, expected: number, fileBytes: number): TokenFileError {
  return new TokenFileError(`${file} is cut off: it has ${fileBytes} bytes of ${expected}. ${remedy}`);
}
