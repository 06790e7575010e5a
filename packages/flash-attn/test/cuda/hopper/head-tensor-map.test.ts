import { describe, expect, it } from 'vitest';
import { headTensorMap, isReadableByTma } from '../../../src/cuda/hopper/head-tensor-map.ts';

const memory = (shape: number[], strides: number[], address = 4096) => ({
  ...{ address, shape, strides },
  dtype: 'bfloat16' as const,
});

describe('headTensorMap', () => {
  it('has narrow parts of columns as a dimension of their own', () => {
    // Heads of a token side by side.
    const x = memory([2, 12, 100, 80], [96000, 80, 960, 1]);
    const whole = headTensorMap(x, { rows: 96, chunk: 16, wholeRows: true });
    expect(whole).toMatchObject({
      dimensions: [16, 100, 5, 12, 2],
      strideBytes: [1920, 32, 160, 192000],
      box: [16, 96, 5, 1, 1],
      swizzle: '32B',
    });
    expect(headTensorMap(x, { rows: 64, chunk: 16, wholeRows: false }).box).toEqual([16, 64, 1, 1, 1]);
  });

  it('has boxes of one part, where parts are wider', () => {
    const x = memory([1, 4, 100, 80], [32000, 8000, 80, 1]);
    expect(headTensorMap(x, { rows: 128, chunk: 32, wholeRows: true })).toMatchObject({
      dimensions: [80, 100, 1, 4, 1],
      // Of a batch of one the stride is not used.
      strideBytes: [160, 64, 16000, 160],
      box: [32, 128, 1, 1, 1],
      swizzle: '64B',
    });
    const y = memory([2, 12, 100, 128], [153600, 128, 1536, 1]);
    expect(headTensorMap(y, { rows: 64, chunk: 64, wholeRows: true })).toMatchObject({
      dimensions: [128, 100, 1, 12, 2],
      box: [64, 64, 1, 1, 1],
    });
  });

  it.each([
    ['narrower than a part', 24, 64, 1],
    ['of a part and a piece', 104, 64, 1],
    ['that a narrow part does not divide', 8, 16, 1],
  ] as const)(
    'ends where columns %s end, so that TMA fills what is past them',
    (_, columns, chunk, parts) => {
      const x = memory([2, 3, 50, columns], [150 * columns, 50 * columns, columns, 1]);
      const map = headTensorMap(x, { rows: 64, chunk, wholeRows: true });
      expect(map.dimensions).toEqual([columns, 50, parts, 3, 2]);
      expect(map.box).toEqual([chunk, 64, parts, 1, 1]);
      expect(map.strideBytes[0]).toBe(2 * columns);
    },
  );
});

describe('isReadableByTma', () => {
  it.each([
    [true, 'dense', memory([2, 3, 5, 64], [960, 320, 64, 1])],
    [true, 'part of a projection', memory([2, 3, 5, 64], [2880, 64, 576, 1])],
    [true, 'of one head, whatever its stride', memory([2, 1, 5, 64], [320, 3, 64, 1])],
    [false, 'transposed', memory([2, 3, 64, 64], [12288, 4096, 1, 64])],
    [false, 'of rows that begin at odd places', memory([2, 3, 5, 64], [1005, 335, 67, 1])],
    [false, 'of a first element at an odd place', memory([2, 3, 5, 64], [960, 320, 64, 1], 4098)],
    [false, 'expanded', memory([2, 3, 5, 64], [960, 0, 64, 1])],
  ])('is %s of a tensor that is %s', (readable, _, x) => {
    expect(isReadableByTma(x)).toBe(readable);
  });
});
