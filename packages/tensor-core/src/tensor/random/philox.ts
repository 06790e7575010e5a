import type { GeneratorState } from './generator.ts';

/**
 * Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits from a counter and a key,
 * without state. kernels/philox.cuh has the same function for the GPU.
 */
const rounds = 10;
const [multiplier0, multiplier1] = [0xd2511f53, 0xcd9e8d57];
const [weyl0, weyl1] = [0x9e3779b9, 0xbb67ae85];
const [low0, high0] = [multiplier0 & 0xffff, multiplier0 >>> 16];
const [low1, high1] = [multiplier1 & 0xffff, multiplier1 >>> 16];

/** A 64-bit number as its 32-bit halves. */
export interface Halves {
  readonly low: number;
  readonly high: number;
}

/** The 32-bit halves of a whole number from 0 to 2^53 - 1. */
export function halvesOf(value: number): Halves {
  return { low: value >>> 0, high: Math.floor(value / 2 ** 32) >>> 0 };
}

/** Fills `words`, whose length must be a multiple of four: four for each counter from `counter` on. */
export function philox(words: Uint32Array, counter: number, { low: key0, high: key1 }: Halves): void {
  for (let i = 0; i < words.length; i += 4, counter++) {
    philoxBlock(words, i, counter >>> 0, Math.floor(counter / 2 ** 32), 0, 0, key0, key1);
  }
}

/** Writes the four words of one counter of four words, x0 the lowest, to `words[at...]`. */
export function philoxBlock(
  words: Uint32Array,
  at: number,
  x0: number,
  x1: number,
  x2: number,
  x3: number,
  key0: number,
  key1: number,
): void {
  for (let round = 0; round < rounds; round++) {
    // The upper halves of two 32 × 32-bit products, from 16-bit parts.
    const a = x0 & 0xffff;
    const b = x0 >>> 16;
    const mid0 = (Math.imul(b, low0) >>> 0) + (Math.imul(a, low0) >>> 16);
    const cross0 = (Math.imul(a, high0) >>> 0) + (mid0 & 0xffff);
    const upper0 = (Math.imul(b, high0) + (mid0 >>> 16) + (cross0 >>> 16)) | 0;
    const c = x2 & 0xffff;
    const d = x2 >>> 16;
    const mid1 = (Math.imul(d, low1) >>> 0) + (Math.imul(c, low1) >>> 16);
    const cross1 = (Math.imul(c, high1) >>> 0) + (mid1 & 0xffff);
    const upper1 = (Math.imul(d, high1) + (mid1 >>> 16) + (cross1 >>> 16)) | 0;
    const lower0 = Math.imul(x0, multiplier0);
    const lower1 = Math.imul(x2, multiplier1);
    x0 = upper1 ^ x1 ^ key0;
    x1 = lower1;
    x2 = upper0 ^ x3 ^ key1;
    x3 = lower0;
    key0 = (key0 + weyl0) | 0;
    key1 = (key1 + weyl1) | 0;
  }
  words[at] = x0;
  words[at + 1] = x1;
  words[at + 2] = x2;
  words[at + 3] = x3;
}

const blockWords = 4096;

/**
 * Calls `use` with the random words of `count` elements from a place on, a block at a time, and the index of its first element. The
 * first block is the longest, and no longer than elements ask for; words come by four.
 */
export function eachBlock(
  count: number,
  { seed, offset }: GeneratorState,
  use: (words: Uint32Array, start: number) => void,
): void {
  const key = halvesOf(seed);
  const wordsFor = (elements: number) => Math.min(blockWords, 4 * Math.ceil(elements / 4));
  const words = new Uint32Array(wordsFor(count));
  for (let start = 0; start < count; start += blockWords) {
    const block = words.subarray(0, wordsFor(count - start));
    philox(block, offset + start / 4, key);
    use(block, start);
  }
}
