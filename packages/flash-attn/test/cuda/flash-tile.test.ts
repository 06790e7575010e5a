import { DeviceError, RooflineError, noGrad, randn, scope, toDevice } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { afterEach, describe, expect, it } from 'vitest';
import { flashAttention, flashTileKernel, getFlashTile, setFlashTile } from '../../src/index.ts';
import { warpsOf } from '../../src/cuda/flash-tile.ts';

const hopper = { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 };
const shapes = { q: [1, 2, 70, 16], k: [1, 2, 70, 16], dtype: 'bfloat16' } as const;

afterEach(() => setFlashTile(null));

it('takes the sizes that the kernel does, and names those that it does not', () => {
  expect(getFlashTile()).toBeNull();
  setFlashTile({ queries: 256, keys: 16 });
  expect(getFlashTile()).toEqual({ queries: 256, keys: 16 });
  for (const [queries, keys, word] of [
    [24, 16, 'queries must be a multiple of 16 up to 256, not 24'],
    [16, 272, 'keys must be a multiple of 16 up to 256, not 272'],
    [144, 16, 'more than 128 queries must be a multiple of 32, not 144'],
  ] as const) {
    expect(() => setFlashTile({ queries, keys })).toThrow(RooflineError);
    expect(() => setFlashTile({ queries, keys })).toThrow(word);
  }
  expect(getFlashTile()).toEqual({ queries: 256, keys: 16 });
  for (let queries = 32; queries <= 256; queries += 32)
    expect(queries % (16 * warpsOf({ queries, keys: 16 }))).toBe(0);
});

it('says what a tile takes, and which one has no room', () => {
  const { spec, threads, sharedBytes } = flashTileKernel(shapes, hopper, { queries: 64, keys: 32 });
  expect(spec).toMatchObject({ name: 'flash_mma_forward', defines: { WARPS: 4, ROW_TILES: 1, BLOCK_N: 32 } });
  expect(threads).toBe(128);
  // Rows of 16 elements of two bytes and 16 bytes of padding.
  expect(sharedBytes).toBe((64 + 2 * 32) * 48);
  const large = { ...shapes, q: [1, 2, 70, 128], k: [1, 2, 70, 128], dtype: 'float32' } as const;
  expect(() => flashTileKernel(large, hopper, { queries: 256, keys: 256 })).toThrow(DeviceError);
  expect(() => flashTileKernel(large, hopper, { queries: 256, keys: 256 })).toThrow(
    'a tile of 256 queries and 256 keys takes 405504 bytes of shared memory in float32 with head dimension 128, and this GPU has 232448',
  );
  expect(() => flashTileKernel({ ...shapes, dtype: 'float64' }, hopper, { queries: 16, keys: 16 })).toThrow(
    'float64 at compute capability 9 has none',
  );
});

describe.skipIf(!hostCompilerVersion())('a forward pass on the emulated GPU', () => {
  const emulated = openEmulatedDevice();
  const attend = (queries: readonly number[] = [1, 2, 70, 16]) =>
    noGrad(() =>
      scope(() => {
        const [q, k, v] = [1, 2, 3].map((seed) => toDevice(randn([...queries], { seed }), emulated));
        return flashAttention(q!, k!, v!, { causal: true }).toTypedArray();
      }),
    );

  it.each([
    [16, 16],
    [64, 16],
    [32, 64],
    [160, 32],
  ])('gives the same with tiles of %i queries and %i keys', (queries, keys) => {
    const expected = attend();
    setFlashTile({ queries, keys });
    const found = attend();
    for (const [index, value] of expected.entries()) expect(found[index]).toBeCloseTo(Number(value), 5);
  });

  it('takes registers of its own, which an emulated GPU does not have', () => {
    const { spec } = flashTileKernel(shapes, hopper, { queries: 16, keys: 16 });
    expect(cudaDevice(emulated).kernel(spec).resources()).toEqual({
      ...{ registersPerThread: 0, localBytesPerThread: 0, staticSharedBytes: 0 },
    });
  });
});
