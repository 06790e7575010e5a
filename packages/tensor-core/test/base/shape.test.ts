import { describe, expect, it } from 'vitest';
import { ShapeError } from '../../src/base/errors.ts';
import {
  broadcastShapes,
  broadcastStrides,
  checkShape,
  checkWhole,
  contiguousStrides,
  formatShape,
  isContiguous,
  normalizeDimension,
  sameShape,
  sizeOf,
} from '../../src/base/shape.ts';

describe('sizes and strides', () => {
  it('of scalars, empty and other shapes', () => {
    expect([sizeOf([]), sizeOf([3, 0]), sizeOf([2, 3, 4])]).toEqual([1, 0, 24]);
    expect(contiguousStrides([2, 3, 4])).toEqual([12, 4, 1]);
    expect(contiguousStrides([])).toEqual([]);
  });

  it.each<[number[], number[], boolean]>([
    [[], [], true],
    [[2, 3], [3, 1], true],
    [[2, 3], [1, 2], false],
    [[2, 3], [4, 1], false],
    [[2, 3], [0, 1], false],
    [[1, 3], [99, 1], true],
    [[3, 1], [1, 99], true],
    [[3, 1], [2, 1], false],
    [[0, 3], [7, 7], true],
    [[3, 0], [7, 7], true],
    [[2, 1, 3], [3, 50, 1], true],
    [[3], [0], false],
    [[1], [0], true],
  ])('%j with strides %j: contiguous %j', (shape, strides, expected) => {
    expect(isContiguous(shape, strides)).toBe(expected);
  });

  it('compares shapes', () => {
    expect([sameShape([1, 2], [1, 2]), sameShape([1, 2], [2, 1]), sameShape([1], [1, 1])]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('broadcasting', () => {
  it.each<[number[], number[], number[]]>([
    [[], [], []],
    [[], [2], [2]],
    [
      [3, 1],
      [1, 4],
      [3, 4],
    ],
    [[2, 3, 4], [4], [2, 3, 4]],
    [[4], [2, 1, 1], [2, 1, 4]],
    [
      [0, 1],
      [1, 3],
      [0, 3],
    ],
    [[1], [0], [0]],
  ])('%j with %j is %j', (a, b, expected) => {
    expect(broadcastShapes('add', a, b)).toEqual(expected);
    expect(broadcastShapes('add', b, a)).toEqual(expected);
  });

  it.each<[number[], number[], string]>([
    [[2], [3], 'dimension 0 is 2 and 3'],
    [[2, 3, 4], [2, 4], 'dimension 1 is 3 and 2'],
    [[0], [2], 'dimension 0 is 0 and 2'],
  ])('%j with %j does not', (a, b, message) => {
    expect(() => broadcastShapes('add', a, b)).toThrow(message);
    expect(() => broadcastShapes('add', a, b)).toThrow(ShapeError);
  });

  it('repeats by strides of 0, and keeps those of what it does not repeat', () => {
    expect(broadcastStrides([3, 1], [1, 9], [2, 3, 4])).toEqual([0, 1, 0]);
    expect(broadcastStrides([3, 1], [1, 9], [3, 1])).toEqual([1, 9]);
    expect(broadcastStrides([], [], [2])).toEqual([0]);
  });
});

describe('checks', () => {
  it('counts dimensions from either end', () => {
    expect([0, 2, -1, -3].map((dim) => normalizeDimension('sum', dim, 3))).toEqual([0, 2, 2, 0]);
    for (const [dim, given] of [
      [3, '3'],
      [-4, '-4'],
      [0.5, '0.5'],
      [NaN, 'NaN'],
      ['1' as never, 'the text "1"'],
      [{} as never, 'an object'],
    ] as const) {
      expect(() => normalizeDimension('sum', dim, 3)).toThrow(
        `sum: dimension ${given} is outside a tensor of rank 3; take one of -3..2.`,
      );
    }
    expect(() => normalizeDimension('sum', -1, 0)).toThrow(
      'sum: a tensor without dimensions has no dimension -1',
    );
  });

  it('takes whole numbers only', () => {
    checkWhole('slice', 'the start', -3);
    for (const value of [0.5, NaN, Infinity, 2 ** 53, '1' as never]) {
      expect(() => checkWhole('slice', 'the start', value)).toThrow(
        'slice: the start must be a whole number',
      );
    }
  });

  it('takes shapes of fewer elements than 2^53', () => {
    checkShape('empty', [2 ** 26, 2 ** 26]);
    checkShape('empty', []);
    checkShape('empty', [2 ** 53, 0]);
    expect(() => checkShape('empty', [2 ** 27, 2 ** 26])).toThrow(ShapeError);
  });

  it.each<[number[], string]>([
    [[NaN], '[NaN]'],
    [[2, -1], '[2, -1]'],
    [[1.5, 0], '[1.5, 0]'],
    [['2' as never], '[2]'],
  ])('%j is no shape', (shape, written) => {
    expect(() => checkShape('empty', shape)).toThrow(ShapeError);
    expect(() => checkShape('empty', shape)).toThrow(`empty: ${written} is no shape`);
  });

  it('writes shapes as lists', () => {
    expect([formatShape([]), formatShape([2]), formatShape([2, 3])]).toEqual(['[]', '[2]', '[2, 3]']);
  });

  it.each<[string, (list: never) => unknown]>([
    ['sizeOf', sizeOf],
    ['formatShape', formatShape],
    ['empty', (list) => checkShape('empty', list)],
  ])('%s takes lists only', (name, take) => {
    for (const list of [5, '23', null, { length: 0 }]) {
      expect(() => take(list as never)).toThrow(ShapeError);
      expect(() => take(list as never)).toThrow(`${name}: takes a list of whole numbers`);
    }
  });
});
