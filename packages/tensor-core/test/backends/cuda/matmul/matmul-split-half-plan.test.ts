import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  layoutSplitHalfOperand,
  modelSplitHalfUs,
  planSplitHalfMatmul,
  splitHalfDefines,
  splitHalfTiles,
} from '../../../../src/backends/cuda/matmul/matmul-split-half-plan.ts';

const smCount = 132;
const largestSharedMemory = 227 * 1024;

describe('planSplitHalfMatmul', () => {
  it('keeps every plan within what the kernel can do', () => {
    const size = fc.integer({ min: 1, max: 12_000 });
    fc.assert(
      fc.property(size, size, size, fc.integer({ min: 1, max: 64 }), (m, n, k, batch) => {
        const plan = planSplitHalfMatmul({ m, n, k, batch, smCount });
        const tiles = Math.ceil(m / plan.tile.blockM) * Math.ceil(n / plan.tile.blockN) * batch;
        expect(plan.gridSize).toBeGreaterThanOrEqual(1);
        expect(plan.gridSize).toBeLessThanOrEqual(smCount);
        expect(plan.sharedMemoryBytes).toBeLessThanOrEqual(largestSharedMemory);
        expect(plan.streamTiles).toBeLessThanOrEqual(tiles);
        expect(plan.partialsBytes > 0).toBe(plan.streamTiles > 0);
      }),
    );
  });

  it('uses large tiles for large products and narrow ones where tiles are few', () => {
    expect(planSplitHalfMatmul({ m: 1024, n: 10240, k: 2560, smCount }).tile).toMatchObject({
      blockM: 128,
      blockN: 128,
    });
    expect(planSplitHalfMatmul({ m: 1024, n: 768, k: 768, smCount })).toMatchObject({
      tile: { blockM: 128, blockN: 64 },
      gridSize: 96,
      streamTiles: 0,
    });
    expect(planSplitHalfMatmul({ m: 8, n: 1024, k: 1024, smCount }).tile.blockM).toBe(64);
  });

  it('shares out the last wave where that saves more than the partial sums cost', () => {
    // 160 tiles of 128×128 on 132 multiprocessors: 28 remain after a full wave.
    const plan = planSplitHalfMatmul({ m: 1024, n: 2560, k: 2560, smCount });
    expect([28, 160]).toContain(plan.streamTiles);
    expect(plan.partialsBytes).toBe(132 * 128 * 128 * 4);
    expect(plan.readyBytes).toBe(132 * 2 * 4);
  });

  it('refuses sizes that are not positive integers', () => {
    expect(() => planSplitHalfMatmul({ m: 0, n: 1, k: 1, smCount })).toThrow(/m is 0/);
    expect(() => planSplitHalfMatmul({ m: 1, n: 1.5, k: 1, smCount })).toThrow(RangeError);
  });

  it('defines the macros of a kernel', () => {
    expect(splitHalfDefines(splitHalfTiles[1]!, false, true)).toEqual({
      BLOCK_M: 128,
      BLOCK_N: 64,
      STAGES: 4,
      TRANS_A: 0,
      TRANS_B: 1,
    });
  });
});

describe('layoutSplitHalfOperand', () => {
  it('pads rows to 16 bytes and counts partial blocks', () => {
    expect(layoutSplitHalfOperand({ rows: 65, columns: 33, batch: 3 })).toEqual({
      pitch: 40,
      planesBytes: 3 * 2 * 65 * 40 * 2,
      summariesBytes: 3 * 2 * 1 * 4,
      factorsBytes: 3 * 2 * 1 * 64,
      blocks: 6,
      tensorMap: { dimensions: [33, 65, 2, 3], strideBytes: [80, 5200, 10400], box: [64, 64, 1, 1] },
    });
  });
});

describe('modelSplitHalfUs', () => {
  it('follows the times measured on an H200', () => {
    expect(modelSplitHalfUs(1024 * 768 + 768 * 768)).toBeCloseTo(6, 0);
    expect(modelSplitHalfUs(1024 * 2560 + 10240 * 2560)).toBeGreaterThan(55);
  });
});
