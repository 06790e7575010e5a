import { HostMemory } from '@roofline/cuda/host';
import { describe, expect, it } from 'vitest';
import {
  hopperBackwardStruct,
  hopperBackwardTiles,
  writeHopperBackwardParams,
} from '../../../src/cuda/hopper/hopper-backward-params.ts';
import { planHopperBackward } from '../../../src/cuda/hopper/hopper-backward-plan.ts';

const sizes = { batch: 2, heads: 6, keyHeads: 3, queries: 500, keys: 300, headDimension: 72 };
const settings = { causal: true, scale: 0.25 };
const planOf = (deterministic: boolean) =>
  planHopperBackward({
    ...{
      ...sizes,
      ...settings,
      deterministic,
      dtype: 'bfloat16',
      kernels: 'auto',
      float32Precision: 'highest',
    },
    ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
  })!;

/** A tensor whose address and strides identify it. */
const tensorOf = (index: number) => ({
  address: 2 ** 40 + index,
  dtype: 'bfloat16' as const,
  shape: [2, 6, 500, 72],
  strides: [100 * index + 1, 100 * index + 2, 100 * index + 3, 1],
});

const tensors = {
  ...{ q: tensorOf(1), k: tensorOf(2), v: tensorOf(3), o: tensorOf(4) },
  ...{ gradO: tensorOf(5), gradQ: tensorOf(6), gradK: tensorOf(7), gradV: tensorOf(8) },
};
const scratch = { lseLog2: 2 ** 43, delta: 2 ** 44, sums: 2 ** 45, turns: 2 ** 46 };

describe('the parameters of flash_hopper_backward.cu', () => {
  it('lie where flash_hopper_backward.cuh says, after the tensor maps', () => {
    const memory = new HostMemory(hopperBackwardStruct.byteLength);
    const rows = { lse: 2 ** 41, gradLse: 2 ** 42, statistics: null };
    const plan = planOf(true);
    writeHopperBackwardParams(memory, { sizes, settings, tensors, rows }, scratch, plan);
    const view = new DataView(memory.bytes.buffer, memory.bytes.byteOffset, hopperBackwardStruct.byteLength);
    const int64 = (offset: number) => Number(view.getBigInt64(offset, true));
    expect(Array.from({ length: 112 }, (_, i) => int64(8 * i))).toEqual(Array(112).fill(0));
    expect(Array.from({ length: 6 }, (_, i) => int64(896 + 8 * i))).toEqual(
      [41, 42, 43, 44, 45, 46].map((power) => 2 ** power),
    );
    expect([944, 952, 960].map(int64)).toEqual([4, 5, 6].map((i) => 2 ** 40 + i));
    expect(Array.from({ length: 9 }, (_, i) => int64(968 + 8 * i))).toEqual(
      [4, 5, 6].flatMap((i) => [100 * i + 1, 100 * i + 2, 100 * i + 3]),
    );
    expect(view.getFloat32(1040, true)).toBe(Math.fround(0.25 * Math.LOG2E));
    expect(view.getFloat32(1044, true)).toBe(0.25);
    // 200 queries see no key: one whole tile of 128, and a part of the next.
    expect(Array.from({ length: 10 }, (_, i) => view.getInt32(1048 + 4 * i, true))).toEqual([
      ...[500, 300, 6, 3, 6, 4, 3, plan.backwardBand, 72, 1],
    ]);
  });

  it('hold nothing of a call before', () => {
    const memory = new HostMemory(hopperBackwardStruct.byteLength);
    const call = { sizes, settings, tensors };
    writeHopperBackwardParams(
      memory,
      { ...call, rows: { lse: 1, gradLse: 2, statistics: 3 } },
      scratch,
      planOf(true),
    );
    const rows = { lse: 1, statistics: null };
    writeHopperBackwardParams(memory, { ...call, rows }, { ...scratch, turns: null }, planOf(false));
    expect([904, 936].map((offset) => memory.readUint64(offset))).toEqual([0, 0]);
  });
});

describe('hopperBackwardTiles', () => {
  const tilesOf = (queries: number, keys: number, causal: boolean) => {
    const { rowTiles, keyTiles, unseenTiles } = hopperBackwardTiles(
      { ...sizes, queries, keys },
      causal,
      planOf(false),
    );
    return [rowTiles, keyTiles, unseenTiles];
  };

  it('counts the tiles that have a query or a key', () => {
    expect(tilesOf(128, 128, true)).toEqual([1, 1, 0]);
    expect(tilesOf(129, 129, true)).toEqual([2, 2, 0]);
    expect(tilesOf(1, 1000, true)).toEqual([1, 8, 0]);
  });

  it('counts as unseeing those tiles of queries of which none sees a key', () => {
    expect(tilesOf(1000, 1, true)).toEqual([8, 1, 7]);
    expect(tilesOf(256, 129, true)).toEqual([2, 2, 0]);
    expect(tilesOf(256, 128, true)).toEqual([2, 1, 1]);
    expect(tilesOf(1000, 1, false)).toEqual([8, 1, 0]);
  });
});
