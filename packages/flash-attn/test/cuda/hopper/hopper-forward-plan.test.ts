import { describe, expect, it } from 'vitest';
import { hopperForwardSharedBytes } from '../../../src/cuda/hopper/hopper-forward.ts';
import { planHopperForward } from '../../../src/cuda/hopper/hopper-forward-plan.ts';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';

const problem: KernelProblem = {
  ...{ dtype: 'bfloat16', kernels: 'auto' },
  ...{ batch: 1, heads: 16, keyHeads: 16, queries: 4096, keys: 4096, headDimension: 64 },
  ...{ causal: true, scale: 0.125, deterministic: false, float32Precision: 'highest' },
  ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
};

describe('planHopperForward', () => {
  const planOf = (changes: Partial<KernelProblem>) => planHopperForward({ ...problem, ...changes })!;
  const tileOf = (changes: Partial<KernelProblem>) => {
    const { warpgroups, keys } = planOf(changes).forward;
    return [64 * warpgroups, keys];
  };

  it('takes large tiles where there are enough of them', () => {
    expect(tileOf({})).toEqual([256, 64]);
    expect(tileOf({ batch: 8, queries: 1024, keys: 1024 })).toEqual([256, 64]);
    expect(tileOf({ headDimension: 128 })).toEqual([128, 128]);
    expect(tileOf({ headDimension: 96 })).toEqual([192, 96]);
    expect(tileOf({ headDimension: 256 })).toEqual([128, 80]);
  });

  it('takes small ones, several a multiprocessor, where there are few', () => {
    for (const sizes of [
      { batch: 4, heads: 12, keyHeads: 12, queries: 256, keys: 256 },
      { batch: 4, heads: 12, keyHeads: 12, queries: 512, keys: 512 },
      { heads: 1, keyHeads: 1, queries: 128, keys: 128 },
    ]) {
      expect(tileOf(sizes)).toEqual([64, 64]);
      expect(planOf(sizes).forward.splits).toBe(1);
    }
    expect(
      planOf({ heads: 1, keyHeads: 1, queries: 128, keys: 128, headDimension: 128 }).forward,
    ).toMatchObject({
      ...{ headDimension: 128, warpgroups: 1, keys: 64, blocksPerMultiprocessor: 2 },
    });
  });

  // How many blocks share a tile of 64 queries; 0 for large tiles.
  it.each([
    [true, 0, 'd64 b1 h16 n4096, d64 b8 h16 n1024, d64 b1 h8 n8192, d64 b1 h1 n65536'],
    [true, 0, 'd128 b4 h16 n512, d128 b1 h16 n2048, d128 b1 h1 n32768, d80 b4 h32 n512'],
    [true, 1, 'd64 b4 h12 n256, d64 b16 h12 n256, d64 b8 h12 n512, d64 b2 h12 n1024, d64 b1 h16 n2048'],
    [true, 1, 'd128 b4 h16 n256, d128 b1 h16 n1024, d80 b4 h32 n256, d192 b1 h1 n16384, d64 b1 h1 n512'],
    [true, 2, 'd64 b1 h4 n4096, d64 b1 h1 n32768, d128 b1 h4 n4096, d128 b1 h1 n8192, d128 b1 h1 n16384'],
    [true, 2, 'd80 b1 h1 n16384, d96 b1 h1 n16384, d192 b1 h1 n4096, d256 b1 h1 n4096'],
    [true, 4, 'd64 b1 h1 n1024, d64 b1 h1 n8192, d128 b1 h1 n4096, d80 b1 h1 n4096, d256 b1 h1 n1024'],
    [false, 0, 'd64 b1 h1 n32768, d128 b1 h1 n16384, d128 b1 h1 n32768'],
    [false, 1, 'd64 b1 h1 n512, d64 b1 h1 n16384'],
    [false, 2, 'd64 b1 h1 n4096, d64 b1 h1 n8192, d128 b1 h1 n2048, d128 b1 h1 n8192'],
    [false, 4, 'd64 b1 h1 n1024, d64 b1 h1 n2048, d128 b1 h1 n1024'],
  ])('takes what was fastest on an H200 (causal %s, %i blocks a tile): %s', (causal, blocks, names) => {
    for (const name of names.split(', ')) {
      const [headDimension, batch, heads, length] = name.split(' ').map((part) => Number(part.slice(1)));
      const sizes = { batch: batch!, heads: heads!, keyHeads: heads!, queries: length!, keys: length! };
      const { forward } = planOf({ headDimension: headDimension!, causal, ...sizes });
      expect([name, forward.warpgroups === 1 ? forward.splits : 0]).toEqual([name, blocks]);
    }
  });

  it('shares the keys of a tile out where one query has a long cache of them', () => {
    expect(planOf({ queries: 1, keys: 65536 }).forward.splits).toBe(4);
  });

  it('chooses the tiles of head dimension 80 by length and mask', () => {
    const wide = { headDimension: 80, batch: 4, heads: 32, keyHeads: 32 };
    expect(tileOf({ ...wide, queries: 256, keys: 256 })).toEqual([64, 64]);
    expect(tileOf({ ...wide, queries: 1024, keys: 1024 })).toEqual([128, 128]);
    expect(tileOf(wide)).toEqual([192, 96]);
    expect(tileOf({ ...wide, causal: false })).toEqual([256, 48]);
    expect(tileOf({ ...wide, causal: false, headDimension: 72 })).toEqual([128, 128]);
  });

  it('fills every multiple of 8 up to 256 up to the next head dimension that has kernels', () => {
    const paddedOf = (headDimension: number) => planOf({ headDimension }).forward.headDimension;
    expect([8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104, 128, 136, 192, 200, 256].map(paddedOf)).toEqual([
      ...[16, 16, 32, 32, 64, 64, 80, 80, 96, 96, 128, 128, 192, 192, 256, 256],
    ]);
    for (let headDimension = 8; headDimension <= 256; headDimension += 8)
      for (const causal of [true, false])
        for (const queries of [64, 1024, 16384]) {
          const { chunk, headDimension: padded } = planOf({ headDimension, causal, queries }).forward;
          // Narrow parts are a dimension of the tensor map: one copy takes them all, so they must make up the tensor.
          if (chunk === 16 && padded > 16) expect(headDimension).toBe(padded);
        }
  });

  it.each([20, 60, 100, 264])('takes no rows of %i columns, which TMA does not read', (headDimension) => {
    expect(planHopperForward({ ...problem, headDimension })).toBeNull();
  });

  it('takes heads together in even bands, never less than one', () => {
    expect(planOf({ headDimension: 128, queries: 16384, keys: 16384 }).forwardBand).toBe(2);
    expect(planOf({ queries: 2 ** 20, keys: 2 ** 20 }).forwardBand).toBe(1);
    expect(planOf({ keyHeads: 4, heads: 16, queries: 16384, keys: 16384 }).forwardBand).toBe(16);
    // Padding is not read.
    expect(
      planOf({ headDimension: 104, heads: 24, keyHeads: 24, queries: 8192, keys: 8192 }).forwardBand,
    ).toBe(4);
  });

  it('fits the shared memory and the registers of a multiprocessor, as often as it says', () => {
    for (let headDimension = 8; headDimension <= 256; headDimension += 8)
      for (const causal of [true, false])
        for (const queries of [64, 512, 4096, 65536]) {
          const { forward } = planOf({ headDimension, causal, queries, keys: queries });
          const blocks = forward.blocksPerMultiprocessor;
          const bytes = hopperForwardSharedBytes(forward);
          expect(bytes).toBeLessThanOrEqual(227 * 1024);
          // A block takes 1 KiB more of the 228.
          expect((bytes + 1024) * blocks).toBeLessThanOrEqual(228 * 1024);
          // A block starts with as many registers for each thread, of 65536, in eights: what some take, others must give.
          const { consumerRegisters, producerRegisters, warpgroups } = forward;
          const granted = Math.floor(65536 / (128 * (warpgroups + 1) * blocks * 8)) * 8;
          const taken = warpgroups * consumerRegisters + producerRegisters;
          expect(taken).toBeLessThanOrEqual((warpgroups + 1) * granted);
        }
  });
});
