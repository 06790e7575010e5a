import { describe, expect, it } from 'vitest';
import { halvesOf, philox, philoxBlock } from '../../../src/tensor/random/philox.ts';

// Known answers of philox4x32-10 that come with the Random123 library (kat_vectors): counter, key, result.
type Words = readonly [number, number, number, number];

const knownAnswers: readonly (readonly [Words, readonly [number, number], Words])[] = [
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
];

describe('philox', () => {
  it.each(knownAnswers)('gives the known answer for counter %j and key %j', (counter, key, expected) => {
    const words = new Uint32Array(4);
    philoxBlock(words, 0, ...counter, ...key);
    expect([...words]).toEqual(expected);
  });

  it('counts on from any 53-bit counter, across 32 bits', () => {
    const start = 5 * 2 ** 32 - 2;
    const words = new Uint32Array(16);
    philox(words, start, halvesOf(2 ** 40 + 7));
    for (let i = 0; i < 4; i++) {
      const one = new Uint32Array(4);
      philoxBlock(one, 0, (start + i) % 2 ** 32, Math.floor((start + i) / 2 ** 32), 0, 0, 7, 256);
      expect(words.slice(4 * i, 4 * i + 4)).toEqual(one);
    }
  });
});
