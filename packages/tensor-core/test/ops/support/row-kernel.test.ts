import { describe, expect, it } from 'vitest';
import { type RegisterBudget, rowPlan, rowsAlone } from '../../../src/ops/support/row-kernel.ts';

const columnCounts = [1, 2, 3, 8, 31, 33, 64, 255, 256, 768, 1000, 2560, 5003, 10000, 16384, 50257, 151936];

describe('rowPlan', () => {
  it.each(columnCounts)('covers rows of %i columns with threads that a block can have', (columns) => {
    for (const length of [1, 2, 4, 8].filter((vector) => columns % vector === 0)) {
      const { defines, rowsPerBlock } = rowPlan('float32', columns, length);
      const { ROW_THREADS: threads, ROW_VECTORS: vectors, BLOCK_THREADS: block } = defines;
      expect(Number.isInteger(Math.log2(threads))).toBe(true);
      expect(block).toBe(threads * rowsPerBlock);
      expect(block % 32).toBe(0);
      expect(block).toBeLessThanOrEqual(1024);
      // Rows that share a block must each fit a warp.
      expect(rowsPerBlock === 1 || threads <= 32).toBe(true);
      expect(vectors === 0 || threads * vectors * length >= columns).toBe(true);
      expect(vectors * length).toBeLessThanOrEqual(32);
    }
  });

  it('keeps common rows in registers, and reads only the longest again', () => {
    const vectorsOf = (columns: number, length: number) =>
      rowPlan('float32', columns, length).defines.ROW_VECTORS;
    expect([768, 2560, 10000, 32768].every((columns) => vectorsOf(columns, 4) > 0)).toBe(true);
    expect(vectorsOf(151936, 4)).toBe(0);
  });

  it('leaves few threads idle', () => {
    const { ROW_THREADS, ROW_VECTORS } = rowPlan('float32', 2560, 4).defines;
    expect(ROW_THREADS * ROW_VECTORS * 4).toBe(2560);
  });

  it('has half the threads for rows alone, which hold twice as much, as long as these are no fewer than a warp', () => {
    const threadsOf = (columns: number, budget?: RegisterBudget) =>
      rowPlan('float32', columns, 4, budget).defines.ROW_THREADS;
    const lengths = [64, 512, 1024, 4096, 16384];
    expect(lengths.map((columns) => threadsOf(columns))).toEqual([16, 32, 64, 256, 1024]);
    expect(lengths.map((columns) => threadsOf(columns, rowsAlone))).toEqual([16, 32, 32, 128, 512]);
  });

  it('gives the same plan object for the same row', () => {
    expect(rowPlan('bfloat16', 512, 8)).toBe(rowPlan('bfloat16', 512, 8));
  });
});
