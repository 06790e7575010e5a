import { describe, expect, it } from 'vitest';
import {
  bandwidths,
  broughtBy,
  collectiveOps,
  expectedAt,
  pieceCount,
} from '../../../src/benchmarks/allreduce/operations.ts';
import { fitLatencyBandwidth } from '../../../src/measuring/latency-bandwidth.ts';
import { parseSize, sizesBetween } from '../../../src/benchmarks/allreduce/sizes.ts';

const shape = { ranks: 4, bytes: 1e6, dtype: 'float32' } as const;

describe('bandwidths', () => {
  // The factors of nccl-tests' doc/PERFORMANCE.md for four ranks.
  it.each([
    ['allreduce', 1.5],
    ['allgather', 0.75],
    ['reducescatter', 0.75],
    ['alltoall', 0.75],
    ['gather', 0.75],
    ['scatter', 0.75],
    ['broadcast', 1],
    ['reduce', 1],
    ['sendrecv', 1],
  ] as const)('%s: the bus carries %f times the size', (op, factor) => {
    const { algorithm, bus } = bandwidths({ ...shape, op }, 2);
    expect(algorithm).toBe(5e8);
    expect(bus).toBe(factor * 5e8);
  });

  it('count the bytes of whole elements, the same for all ranks', () => {
    expect(pieceCount({ ...shape, op: 'allgather', bytes: 1003, ranks: 3 })).toBe(83);
    expect(bandwidths({ ...shape, op: 'allgather', bytes: 1003, ranks: 3 }, 1).algorithm).toBe(996e3);
    expect(pieceCount({ ...shape, op: 'allreduce', bytes: 1003, dtype: 'bfloat16' })).toBe(501);
  });
});

describe('expected values', () => {
  it('are those of what the ranks bring', () => {
    const at = (op: (typeof collectiveOps)[number], rank: number, i: number) =>
      expectedAt(op, rank, 3, 2)?.(i);
    // Three ranks bring 0, 1 and 2 to every place, in some order.
    expect(at('allreduce', 1, 7)).toBe(3);
    expect([at('reduce', 0, 1), at('reduce', 1, 1)]).toEqual([3, undefined]);
    expect(at('allgather', 0, 3)).toBe(broughtBy(1, 1));
    expect(at('alltoall', 2, 1)).toBe(broughtBy(0, 5));
    expect(at('scatter', 2, 1)).toBe(broughtBy(0, 5));
    expect(at('sendrecv', 0, 1)).toBe(broughtBy(2, 1));
    expect(at('broadcast', 2, 1)).toBe(1);
  });
});

describe('sizes', () => {
  it.each([
    ['10MB', 1e7],
    ['1GB', 1e9],
    ['8M', 2 ** 23],
    ['8MiB', 2 ** 23],
    ['1.5k', 1536],
    ['4096', 4096],
  ])('%s', (text, bytes) => expect(parseSize('size', text)).toBe(bytes));

  it.each(['', 'MB', '-1', '0', '1 TBs', '1e3'])('not %j', (text) => {
    expect(() => parseSize('size', text)).toThrow('--size wants a size');
  });

  it('grow by the factor, and end', () => {
    expect(sizesBetween(8, 64, 2)).toEqual([8, 16, 32, 64]);
    expect(sizesBetween(1, 3, 1.01)).toEqual([1, 2, 3]);
    expect(() => sizesBetween(1, 8, 1)).toThrow('--factor wants a number above 1');
  });
});

describe('latency and bandwidth', () => {
  it('are found again', () => {
    const points = [1e3, 1e5, 1e7].map((bytes) => ({ bytes, timeMs: 0.05 + bytes / 2e6 }));
    const fit = fitLatencyBandwidth(points)!;
    expect(fit.latencyMs).toBeCloseTo(0.05, 9);
    expect(fit.bytesPerSecond / 2e9).toBeCloseTo(1, 9);
  });

  it('no latency is negative, one size says nothing, and neither do times that shrink', () => {
    const convex = [
      { bytes: 1, timeMs: 1 },
      { bytes: 10, timeMs: 100 },
    ];
    const fit = fitLatencyBandwidth(convex)!;
    expect(fit.latencyMs).toBe(0);
    // The line through 0 whose relative errors have the least squares: Σ x/t over Σ (x/t)² milliseconds a byte.
    expect(1000 / fit.bytesPerSecond).toBeCloseTo((1 + 0.1) / (1 + 0.01), 12);
    expect(fitLatencyBandwidth([{ bytes: 1, timeMs: 1 }])).toBeNull();
    expect(
      fitLatencyBandwidth([
        { bytes: 1, timeMs: 2 },
        { bytes: 10, timeMs: 1 },
      ]),
    ).toBeNull();
  });
});
