import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { headerBytes } from './token-file-header.ts';

/** How far the writer of a file of tokens had come, as it stands where the header is to be. */
export interface TokenFileProgress {
  /** What is written, and of what: 16 bytes that differ where anything does. */
  readonly job: Uint8Array;
  /** How many tokens are on the disk. */
  readonly length: number;
  /** CRC-32 of their bytes. */
  readonly checksum: number;
  /** From where the caller goes on. */
  readonly place: number;
}

const magic = Buffer.from('RTPART\n\0', 'latin1');
const jobBytes = 16;
/** Where each field lies; the checksum of all before it is the last one, and zeros fill the rest. */
const at = { job: 8, length: 24, place: 32, checksum: 40, ownChecksum: 44 };

/** The bytes that identify a job. */
export function digestOf(job: unknown): Uint8Array {
  return createHash('sha256').update(JSON.stringify(job)).digest().subarray(0, jobBytes);
}

/** As many bytes as a header has. */
export function encodeProgress({ job, length, checksum, place }: TokenFileProgress): Uint8Array {
  const bytes = Buffer.alloc(headerBytes);
  magic.copy(bytes);
  bytes.set(job, at.job);
  bytes.writeBigUInt64LE(BigInt(length), at.length);
  bytes.writeBigUInt64LE(BigInt(place), at.place);
  bytes.writeUInt32LE(checksum, at.checksum);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, at.ownChecksum)), at.ownChecksum);
  return bytes;
}

/** Null for bytes that `encodeProgress` did not make, or not all of them. */
export function decodeProgress(first: Uint8Array): TokenFileProgress | null {
  if (first.length < headerBytes || !magic.equals(first.subarray(0, magic.length))) return null;
  const bytes = Buffer.from(first.buffer, first.byteOffset, headerBytes);
  if (crc32(bytes.subarray(0, at.ownChecksum)) !== bytes.readUInt32LE(at.ownChecksum)) return null;
  return {
    job: bytes.subarray(at.job, at.job + jobBytes),
    length: Number(bytes.readBigUInt64LE(at.length)),
    checksum: bytes.readUInt32LE(at.checksum),
    place: Number(bytes.readBigUInt64LE(at.place)),
  };
}
