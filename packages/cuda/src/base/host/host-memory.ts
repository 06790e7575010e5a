import { checkCount, wrongArgument } from '../check-value.ts';
import { ffi } from './ffi.ts';

const twoTo32 = 2 ** 32;

/** Host memory at an address that never moves, for C to read and write. Offsets count bytes. */
export class HostMemory {
  readonly address: number;
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  readonly floats: Float32Array;
  readonly doubles: Float64Array;

  /** `byteLength` is rounded up to 256, the start aligned to 64. */
  constructor(byteLength: number) {
    checkCount('HostMemory', 'the number of bytes', byteLength);
    const rounded = Math.ceil(byteLength / 256) * 256;
    // Small array buffers live on the garbage-collected heap and move; those of some size never do.
    const buffer = new ArrayBuffer(Math.max(rounded, 4096) + 64);
    const start = Number(ffi().address(new Uint8Array(buffer)));
    const padding = (64 - (start % 64)) % 64;
    this.address = start + padding;
    this.bytes = new Uint8Array(buffer, padding, rounded);
    this.words = new Uint32Array(buffer, padding, rounded / 4);
    this.floats = new Float32Array(buffer, padding, rounded / 4);
    this.doubles = new Float64Array(buffer, padding, rounded / 8);
  }

  /** An unsigned 64-bit value; exact below 2^53. */
  readUint64(byteOffset: number): number {
    return this.words[byteOffset / 4]! + this.words[byteOffset / 4 + 1]! * twoTo32;
  }

  readInt32(byteOffset: number): number {
    return this.words[byteOffset / 4]! | 0;
  }

  /** A signed or unsigned 64-bit value, such as a pointer, without a BigInt. */
  writeInt64(byteOffset: number, value: number): void {
    this.words[byteOffset / 4] = value;
    this.words[byteOffset / 4 + 1] = Math.floor(value / twoTo32);
  }
}

/** The address of a typed array's first byte; the array must own its buffer's memory off the heap. */
export function addressOf(bytes: Uint8Array): number {
  if (!(bytes instanceof Uint8Array)) throw wrongArgument('addressOf', 'the bytes', 'a Uint8Array', bytes);
  return Number(ffi().address(bytes));
}
