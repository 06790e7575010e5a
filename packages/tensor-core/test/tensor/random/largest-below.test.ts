import { describe, expect, it } from 'vitest';
import { largestBelow, largestUpTo } from '../../../src/tensor/random/largest-below.ts';

describe('largestBelow', () => {
  it.each([
    ['float32', 1, 1 - 2 ** -24],
    ['float32', 1 + 1e-10, 1],
    ['float32', 1 - 1e-10, 1 - 2 ** -24],
    ['float32', -1, -1 - 2 ** -23],
    ['float32', 0, -(2 ** -149)],
    ['float64', 1, 1 - 2 ** -53],
    ['float64', -1, -1 - 2 ** -52],
    ['float64', 0, -(2 ** -1074)],
    ['float16', 2, 2 - 2 ** -10],
    ['float16', 1e5, 65504],
    ['float16', 0, -(2 ** -24)],
    ['bfloat16', 101, 100.5],
    ['bfloat16', -0.25, -0.251953125],
    ['bfloat16', 0, -(2 ** -133)],
  ] as const)('of %s and %d is %d', (dtype, limit, below) => {
    expect(largestBelow(dtype, limit)).toBe(below);
  });
});

describe('largestUpTo', () => {
  it('is the limit itself where the dtype has it', () => {
    expect(largestUpTo('bfloat16', 101)).toBe(101);
    expect(largestUpTo('bfloat16', 100.9)).toBe(100.5);
    expect(largestUpTo('float16', -0.3333)).toBeLessThan(-0.3333);
  });
});
