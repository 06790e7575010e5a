import { describe, expect, it } from 'vitest';
import { flashParams } from '../../src/cuda/flash-params.ts';

/** A tensor whose address and strides identify it. */
const tensorOf = (index: number) => ({
  address: 2 ** 40 + index,
  dtype: 'float32' as const,
  shape: [1, 1, 1, 1],
  strides: [100 * index + 1, 100 * index + 2, 100 * index + 3, 1],
});

const sizes = { batch: 2, heads: 6, keyHeads: 3, queries: 17, keys: 19, headDimension: 40 };

describe('flashParams', () => {
  const tensors = {
    ...{ q: tensorOf(1), k: tensorOf(2), v: tensorOf(3), o: tensorOf(4) },
    ...{ gradO: tensorOf(5), gradQ: tensorOf(6), gradK: tensorOf(7), gradV: tensorOf(8) },
  };

  it('writes the bytes that flash_params.cuh describes', () => {
    const rows = { lse: 2 ** 41, statistics: 2 ** 42, gradLse: 2 ** 43, delta: 2 ** 44 };
    const bytes = flashParams(tensors, rows, sizes, { causal: true, scale: 0.125 });
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    expect(bytes.byteLength).toBe(328);
    const int64 = (offset: number) => Number(view.getBigInt64(offset, true));
    expect([0, 8, 16, 24, 40, 64, 72, 80].map(int64)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** 40 + i),
    );
    expect([32, 280, 48, 56].map(int64)).toEqual([41, 42, 43, 44].map((power) => 2 ** power));
    for (let i = 0; i < 24; i++) {
      expect(int64(88 + 8 * i)).toBe(100 * (Math.floor(i / 3) + 1) + (i % 3) + 1);
    }
    expect([288, 292, 296, 300, 304, 308, 320].map((offset) => view.getInt32(offset, true))).toEqual([
      ...[2, 6, 3, 17, 19, 40, 1],
    ]);
    expect(view.getFloat64(312, true)).toBe(0.125);
  });

  it('leaves nothing of a call to the next one', () => {
    const settings = { causal: false, scale: 1 };
    flashParams(tensors, { lse: 1, statistics: 2, gradLse: 3, delta: 4 }, sizes, { causal: true, scale: 2 });
    const { q, k, v, o } = tensors;
    const bytes = flashParams({ q, k, v, o }, { lse: 1, statistics: null }, sizes, settings);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    for (const offset of [40, 48, 56, 64, 72, 80, 184, 208, 232, 256, 280, 320])
      expect(view.getUint32(offset, true)).toBe(0);
  });
});
