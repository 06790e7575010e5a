import { describe, expect, it } from 'vitest';
import { DTypeError, ShapeError } from '../../../src/base/errors.ts';
import { outOfRange, requireInRange } from '../../../src/ops/support/check-indices.ts';
import { numbersOf, storeNumbers } from '../../../src/ops/support/host-numbers.ts';
import {
  columnsAreFew,
  dimensionOf,
  extentsAround,
  middleLast,
} from '../../../src/ops/support/one-dimension.ts';
import { ones, scope } from '../../../src/index.ts';

describe('a tensor around one of its dimensions', () => {
  it.each<[shape: number[], dimension: number | null, extents: number[]]>([
    [[2, 3, 5], 0, [1, 2, 15]],
    [[2, 3, 5], 1, [2, 3, 5]],
    [[2, 3, 5], 2, [6, 5, 1]],
    [[2, 3, 5], null, [1, 30, 1]],
    [[2, 0, 5], 2, [0, 5, 1]],
    [[], 0, [1, 1, 1]],
    [[], null, [1, 1, 1]],
  ])('%j around %j is %j', (shape, dimension, [outer, length, inner]) => {
    expect(extentsAround(shape, dimension)).toEqual({ outer, length, inner });
  });

  it('is counted from either end; one without dimensions takes 0 and -1', () => {
    scope(() => {
      const [scalar, table] = [ones([]), ones([2, 3])];
      expect([0, -1].map((dimension) => dimensionOf('sum', scalar, dimension))).toEqual([0, 0]);
      expect([1, -1, -2].map((dimension) => dimensionOf('sum', table, dimension))).toEqual([1, 1, 0]);
      expect(() => dimensionOf('sum', scalar, 1)).toThrow(ShapeError);
      expect(() => dimensionOf('sum', table, 2)).toThrow('sum: dimension 2');
      expect(() => dimensionOf('sum', [1] as never, 0)).toThrow(DTypeError);
    });
  });

  it('leaves a GPU idle where few columns are long', () => {
    const few = (outer: number, length: number, inner: number) => columnsAreFew({ outer, length, inner });
    expect([few(4095, 1025, 1), few(63, 1025, 65)]).toEqual([true, true]);
    expect([few(4096, 1025, 1), few(64, 1025, 64), few(1, 1024, 1)]).toEqual([false, false, false]);
  });

  it('is seen with that dimension last, each row-major index in its own position', () => {
    const memory = middleLast({ dtype: 'float64' } as never, 640, { outer: 2, length: 3, inner: 5 });
    expect(memory).toEqual({ address: 640, dtype: 'float64', shape: [2, 5, 3], strides: [15, 1, 5] });
  });
});

describe('elements of low precision', () => {
  it('are computed in float32, and rounded when stored', () => {
    const data = Uint16Array.of(0x3c00, 0xc000);
    expect(numbersOf({ data, dtype: 'float16' } as never)).toEqual(Float32Array.of(1, -2));
    storeNumbers({ data, dtype: 'bfloat16' } as never, Float32Array.of(1, 1 + 2 ** -12));
    expect(data).toEqual(Uint16Array.of(0x3f80, 0x3f80));
  });

  it('and others are taken as they are', () => {
    const data = Float64Array.of(1, 2);
    expect(numbersOf({ data, dtype: 'float64' } as never)).toBe(data);
    storeNumbers({ data, dtype: 'float64' } as never, Float64Array.of(3, 0.1));
    expect([...data]).toEqual([3, 0.1]);
  });
});

describe('indices', () => {
  const range = { op: 'gather', role: 'index', length: 3, within: 'a dimension of 3' } as const;

  it('are 0 to length - 1, and one more that is ignored', () => {
    requireInRange(Int32Array.of(0, 2, 1), range);
    requireInRange(BigInt64Array.of(2n, -100n), { ...range, ignored: -100 });
    requireInRange(new Int32Array(0), { ...range, length: 0 });
  });

  it.each([3, -1, 2 ** 31 - 1])('may not hold %d, which is reported with its position', (index) => {
    const attempt = () => requireInRange(Int32Array.of(0, index, 99), range);
    expect(attempt).toThrow(ShapeError);
    expect(attempt).toThrow(outOfRange(index, 1, range).message);
    expect(attempt).toThrow(`gather: index ${index} at position 1 is outside a dimension of 3`);
  });
});
