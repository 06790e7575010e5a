import { describe, expect, it } from 'vitest';
import { hasWideSpread, ratioOfMedians, summarize } from '../../src/measuring/statistics.ts';

describe('summarize', () => {
  it('uses the sample standard deviation', () => {
    expect(summarize([2, 4, 4, 4, 5, 5, 7, 9])).toEqual({
      count: 8,
      mean: 5,
      std: Math.sqrt(32 / 7),
      median: 4.5,
      min: 2,
      max: 9,
    });
  });

  it('has no spread for one sample and refuses none', () => {
    expect(summarize([3])).toMatchObject({ std: 0, median: 3 });
    expect(() => summarize([])).toThrow(RangeError);
  });

  it('warns above 5 % of the mean', () => {
    expect(hasWideSpread(summarize([100, 104, 96]))).toBe(false);
    expect(hasWideSpread(summarize([100, 107, 93]))).toBe(true);
  });
});

describe('ratioOfMedians', () => {
  const spread = (center: number) => Array.from({ length: 20 }, (_, index) => center + (index - 9.5) / 10);

  it('holds the true ratio within its bounds', () => {
    const { ratio, low, high } = ratioOfMedians(spread(50), spread(100));
    expect(ratio).toBeCloseTo(0.5, 10);
    expect(low).toBeLessThan(0.5);
    expect(high).toBeGreaterThan(0.5);
    expect(high - low).toBeLessThan(0.02);
  });

  it('tells equal samples apart from slower ones, the same way each time', () => {
    const same = ratioOfMedians(spread(100), spread(100));
    expect(same.low).toBeLessThanOrEqual(1);
    expect(same.high).toBeGreaterThanOrEqual(1);
    expect(ratioOfMedians(spread(110), spread(100)).low).toBeGreaterThan(1.08);
    expect(ratioOfMedians(spread(100), spread(100))).toEqual(same);
  });

  it('is not moved by one outlier', () => {
    const outlier = [...spread(100).slice(1), 1000];
    expect(ratioOfMedians(outlier, spread(100)).high).toBeLessThan(1.02);
  });
});
