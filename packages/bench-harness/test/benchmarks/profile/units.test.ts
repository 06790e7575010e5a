import { describe, expect, it } from 'vitest';
import type { KernelSpan } from '../../../src/benchmarks/profile/kernel-spans.ts';
import { unitTimes } from '../../../src/benchmarks/profile/report/units.ts';

// A TFLOP/s is 1 FLOP a picosecond: 1e6 FLOPs need a microsecond; 1e5 bytes need one of memory.
const ceilings = { matmulFlopsPerSecond: { bfloat16: 1e12 }, copyBytesPerSecond: 1e11 };
const product = {
  name: 'matmul',
  index: 0,
  dtype: 'bfloat16',
  isMatrixProduct: true,
  flops: 0,
  allocatedBytes: 0,
};
const span = (
  startUs: number,
  durationUs: number,
  tensorUs: number,
  memoryUs: number,
  step = 0,
): KernelSpan => ({
  ...{ name: 'k', kind: 'kernel', stream: 's', step, startUs, durationUs, ranges: [] },
  op: { ...product, isMatrixProduct: tensorUs > 0 },
  work: { flops: tensorUs * 1e6, bytes: memoryUs * 1e5 },
});
const times = (spans: readonly KernelSpan[], steps = 1) => unitTimes(spans, steps, ceilings)!;

describe('unitTimes', () => {
  it('are what kernels need of each unit, and both at once where that exceeds their time', () => {
    // Needs 8 + 5 of 10 µs, then 2 + 3 of 10, then memory alone.
    const each = times([span(0, 10, 8, 5), span(10, 10, 2, 3), span(20, 10, 0, 9)]);
    expect(each.busyMs).toBeCloseTo(0.03, 9);
    expect(each.tensorMs).toBeCloseTo(0.01, 9);
    expect(each.memoryMs).toBeCloseTo(0.017, 9);
    expect(each.bothMs).toBeCloseTo(0.003, 9);
    expect(each.bothShare).toBeCloseTo(0.1, 9);
  });

  it('count kernels of several branches that run at the same time', () => {
    // 9 µs of each unit in 10 µs: at least 8 of both, in no kernel alone.
    expect(times([span(0, 10, 9, 0), span(0, 10, 0, 9)]).bothMs).toBeCloseTo(0.008, 9);
    expect(times([span(0, 10, 9, 0), span(10, 10, 0, 9)]).bothMs).toBe(0);
  });

  it('are no longer than the kernel, which the cache may have spared traffic', () => {
    expect(times([span(0, 1, 1, 30)]).bothMs).toBeCloseTo(0.001, 9);
  });

  it('are means over the steps, whose clocks begin anew', () => {
    expect(times([span(0, 10, 8, 5, 0), span(0, 10, 8, 5, 1)], 2)).toEqual(times([span(0, 10, 8, 5)]));
  });

  it('need nothing where the work is unknown, and are unknown without a ceiling for a product', () => {
    expect(times([{ ...span(0, 10, 8, 5), work: null }])).toMatchObject({
      tensorMs: 0,
      memoryMs: 0,
      bothMs: 0,
    });
    const float64 = { ...span(0, 10, 8, 5), op: { ...product, dtype: 'float64' } };
    expect(unitTimes([float64], 1, ceilings)).toBeNull();
    expect(unitTimes([], 1, ceilings)).toMatchObject({ busyMs: 0, bothShare: 0 });
  });
});
