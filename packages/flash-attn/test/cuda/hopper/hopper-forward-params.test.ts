import type { HostMemory } from '@roofline/cuda/host';
import type { TensorMapDescription } from '@roofline/cuda';
import { describe, expect, it } from 'vitest';
import { hopperForwardParams } from '../../../src/cuda/hopper/hopper-forward.ts';
import { planHopperForward } from '../../../src/cuda/hopper/hopper-forward-plan.ts';

/** A tensor [batch, heads, length, d] with the heads of a token side by side, of a dtype that TMA reads. */
const tensorOf = (address: number, [batch, heads, length, d]: [number, number, number, number]) => ({
  ...{ address, dtype: 'bfloat16' as const, shape: [batch, heads, length, d] },
  strides: [heads * length * d, d, heads * d, 1],
});

/** Writes the number of each map where it belongs, and keeps what it describes. */
class Recorder {
  readonly maps: TensorMapDescription[] = [];

  encodeTensorMap(description: TensorMapDescription, to: HostMemory, byteOffset = 0): void {
    to.words[byteOffset / 4] = this.maps.push(description);
  }

  scratch(name: string, byteLength: number): number {
    expect([name, byteLength]).toEqual(['flash_hopper_forward tiles', 4]);
    return 2 ** 42 + 4;
  }
}

function write(sizes: { batch: number; queries: number; keys: number; headDimension: number }) {
  const { batch, queries, keys, headDimension } = sizes;
  const [heads, keyHeads] = [6, 3];
  const settings = { causal: true, scale: 0.25 };
  const plan = planHopperForward({
    ...{
      dtype: 'bfloat16',
      kernels: 'auto',
      deterministic: false,
      float32Precision: 'highest',
      heads,
      keyHeads,
    },
    ...sizes,
    ...settings,
    ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
  })!;
  const device = new Recorder();
  const tensors = {
    q: tensorOf(1024, [batch, heads, queries, headDimension]),
    k: tensorOf(2048, [batch, keyHeads, keys, headDimension]),
    v: tensorOf(3072, [batch, keyHeads, keys, headDimension]),
    o: tensorOf(4096, [batch, heads, queries, headDimension]),
  };
  const rows = { lse: 2 ** 41 + 8, statistics: null };
  const call = { sizes: { ...sizes, heads, keyHeads }, settings, tensors, rows };
  const bytes = hopperForwardParams(device, call, plan);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { plan, view, maps: device.maps };
}

describe('hopperForwardParams', () => {
  it('writes the bytes that flash_hopper_forward.cuh describes', () => {
    const sizes = { batch: 40, queries: 1000, keys: 1100, headDimension: 128 };
    const { plan, view, maps } = write(sizes);
    expect(view.byteLength).toBe(576);
    expect([0, 128, 256, 384].map((offset) => view.getInt32(offset, true))).toEqual([1, 2, 3, 4]);
    expect(maps.map(({ address }) => address)).toEqual([1024, 2048, 3072, 4096]);
    expect([512, 520].map((offset) => Number(view.getBigInt64(offset, true)))).toEqual([
      2 ** 41 + 8,
      2 ** 42 + 4,
    ]);
    expect(view.getFloat32(528, true)).toBe(Math.fround(0.25 * Math.LOG2E));
    expect(view.getFloat32(532, true)).toBe(0.25);
    // queries, keys, heads, heads that share one of k and v, all heads, tiles of a head, all tiles, heads of a band.
    expect(Array.from({ length: 8 }, (_, i) => view.getInt32(536 + 4 * i, true))).toEqual([
      ...[1000, 1100, 6, 2, 240, 8, 1920, plan.forwardBand],
    ]);
  });

  it('describes what the tile takes: queries of a warpgroup, and keys of a block', () => {
    const { plan, maps } = write({ batch: 40, queries: 1000, keys: 1100, headDimension: 120 });
    const { keys, chunk } = plan.forward;
    const rows = [64, keys, keys, 64];
    maps.forEach(({ dimensions, box, swizzle }, i) => {
      expect([dimensions[0], box[0], box[1]]).toEqual([120, chunk, rows[i]]);
      expect(swizzle).toBe(`${2 * chunk}B`);
    });
  });

  it('has blocks that share the keys of a tile store their part of its queries', () => {
    const { plan, maps } = write({ batch: 1, queries: 200, keys: 2000, headDimension: 64 });
    expect(plan.forward.splits).toBeGreaterThan(1);
    expect(maps[3]!.box[1]).toBe(64 / plan.forward.splits);
  });
});
