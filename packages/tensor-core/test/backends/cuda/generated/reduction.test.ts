import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import type { DType } from '../../../../src/index.ts';
import { accumulatorDType } from '../../../../src/backends/cuda/generated/reduction-kernel.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

describe('accumulatorDType', () => {
  it('folds low precision in float32 and integers as the output has them', () => {
    expect(accumulatorDType('bfloat16', 'bfloat16')).toBe('float32');
    expect(accumulatorDType('float64', 'float64')).toBe('float64');
    expect(accumulatorDType('int32', 'int64')).toBe('int64');
    expect(accumulatorDType('bool', 'bool')).toBe('bool');
    expect(accumulatorDType('int64', 'float32')).toBe('float64');
    expect(accumulatorDType('bool', 'float32')).toBe('float64');
  });
});

describe.skipIf(!hostCompilerVersion())('ReductionRunner, emulated', () => {
  const device = openEmulatedDevice();
  /** Integers that sum exactly in float32. */
  const make = (shape: readonly number[], dtype: DType = 'float32') =>
    t.cast(
      t.reshape(
        t.fromTypedArray(
          Float32Array.from({ length: t.sizeOf(shape) }, (_, i) => i % 7),
          [t.sizeOf(shape)],
          { device },
        ),
        shape,
      ),
      dtype,
    );
  const total = (count: number, start = 0, step = 1) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += (start + i * step) % 7;
    return sum;
  };

  it.each([1, 31, 64, 1000, 1024, 1025, 5000, 100_000, 100_001])('sums %i elements in one row', (length) => {
    t.scope(() => expect(t.sum(make([length])).item()).toBe(total(length)));
  });

  it.each([
    [3, 33],
    [40, 128],
    [2, 9000],
    [2, 20_000],
  ])('sums the rows of [%i, %i]', (rows, columns) => {
    t.scope(() => {
      const expected = Array.from({ length: rows }, (_, i) => total(columns, i * columns));
      expect(t.sum(make([rows, columns]), { dims: 1 }).toFlatArray()).toEqual(expected);
    });
  });

  it.each([
    [5, 3],
    [1000, 4],
    [700, 130],
    [3000, 8],
    [33, 257],
  ])('sums the columns of [%i, %i]', (rows, columns) => {
    t.scope(() => {
      const expected = Array.from({ length: columns }, (_, j) => total(rows, j, columns));
      expect(t.sum(make([rows, columns]), { dims: 0 }).toFlatArray()).toEqual(expected);
    });
  });

  it('sums the middle of three dimensions, and the outer two', () => {
    t.scope(() => {
      const x = make([3, 50, 12]);
      const middle = t.sum(x, { dims: 1 });
      expect(middle.toFlatArray()[12 * 2 + 5]).toBe(total(50, 2 * 600 + 5, 12));
      const outer = t.sum(x, { dims: [0, 2] });
      expect(outer.toFlatArray()[7]).toBe([0, 1, 2].reduce((sum, i) => sum + total(12, i * 600 + 7 * 12), 0));
    });
  });

  it('reads views', () => {
    t.scope(() => {
      const x = make([20, 30]);
      expect(t.sum(t.transpose(x), { dims: 0 }).toFlatArray()).toEqual(t.sum(x, { dims: 1 }).toFlatArray());
      expect(t.sum(t.slice(x, 1, 3, 17), { dims: 1 }).toFlatArray()[2]).toBe(total(14, 63));
      expect(t.sum(t.slice(t.reshape(x, [600]), 0, 5, 599)).item()).toBe(total(594, 5));
      expect(t.sum(t.expand(t.slice(x, 0, 0, 1), [4, 30]), { dims: 0 }).toFlatArray()[3]).toBe(12);
    });
  });

  it.each(['float16', 'bfloat16', 'float64', 'int32', 'int64', 'bool'] as const)('folds %s', (dtype) => {
    t.scope(() => {
      const x = make([4, 9], dtype);
      const values = x.toFlatArray().slice(9, 18);
      const sum = values.reduce((a, b) => a + b, 0);
      expect(t.sum(x, { dims: 1 }).toFlatArray()[1]).toBe(sum);
      expect(t.max(x, { dims: 1 }).toFlatArray()[1]).toBe(Math.max(...values));
      expect(t.max(x, { dims: 0 }).dtype).toBe(dtype);
    });
  });

  it('folds bfloat16 without losing what float32 keeps', () => {
    t.scope(() => {
      const ones = t.ones([4096], { device, dtype: 'bfloat16' });
      expect(t.sum(ones).item()).toBe(4096);
      expect(t.mean(ones).item()).toBe(1);
    });
  });

  it('gives the identity for an empty fold, and NaN for its mean', () => {
    t.scope(() => {
      const empty = t.zeros([2, 0], { device });
      expect(t.sum(empty, { dims: 1 }).toFlatArray()).toEqual([0, 0]);
      expect(t.mean(empty, { dims: 1 }).toFlatArray()).toEqual([NaN, NaN]);
    });
  });

  it('gives the same bits every time', () => {
    t.scope(() => {
      const values = Float32Array.from({ length: 30_000 }, (_, i) => Math.sin(i) * 10 ** (i % 5));
      const x = t.fromTypedArray(values, [300, 100], { device });
      for (const options of [{}, { dims: 0 }, { dims: 1 }]) {
        expect(t.sum(x, options).toFlatArray()).toEqual(t.sum(x, options).toFlatArray());
      }
    });
  });

  type Fold = (make: (shape: readonly number[], dtype?: DType) => t.Tensor) => t.Tensor;
  const rows = { dims: 1 };

  // The lengths are powers of two, so that means are exact as well.
  it.each<[string, Fold, Fold]>([
    ['op', (x) => t.sum(x([8, 64]), rows), (x) => t.max(x([8, 64]), rows)],
    ['input', (x) => t.sum(x([8, 64], 'int32'), rows), (x) => t.sum(x([8, 64], 'int64'), rows)],
    // The first leaves 16 partial sums in float32, which become bfloat16.
    ['output', (x) => t.sum(x([2 ** 16], 'bfloat16')), (x) => t.sum(x([16]))],
    ['dimension', (x) => t.sum(x([128, 128]), rows), (x) => t.sum(x([128, 128]), { dims: 0 })],
    ['width of rows', (x) => t.sum(x([4, 2048]), rows), (x) => t.sum(x([64, 1024]), rows)],
    ['vector', (x) => t.sum(x([8, 64]), rows), (x) => t.sum(x([8, 63]), rows)],
    ['term', (x) => t.variance(x([2 ** 16], 'float64')), (x) => t.variance(x([16], 'float64'))],
    ['end', (x) => t.mean(x([2 ** 16])), (x) => t.mean(x([4, 2048]), rows)],
  ])('takes one kernel for each %s, whichever was generated first', (_, first, second) => {
    const on =
      (device: t.Device) =>
      (shape: readonly number[], dtype: DType = 'float32') => {
        const values = Float32Array.from({ length: t.sizeOf(shape) }, (_, i) => i % 7);
        return t.cast(t.fromTypedArray(values, shape, { device }), dtype);
      };
    const results = (folds: readonly Fold[], device: t.Device) =>
      t.scope(() => folds.map((fold) => fold(on(device)).toFlatArray()));
    for (const folds of [
      [first, second],
      [second, first],
    ]) {
      expect(results(folds, openEmulatedDevice())).toEqual(results(folds, t.device('cpu')));
    }
  });
});
