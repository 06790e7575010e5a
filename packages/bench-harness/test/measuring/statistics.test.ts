import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../src/errors.ts';
import {
  formatInterval,
  quantile,
  errorBarOf,
  ratioOfMedians,
  summarize,
} from '../../src/measuring/statistics.ts';

describe('quantile', () => {
  it('is linear between neighbours, as torch.quantile has it', () => {
    expect(quantile([4, 1, 3, 2, 5], 0.2)).toBeCloseTo(1.8, 12);
    expect(quantile([4, 1, 3, 2, 5], 0.5)).toBe(3);
    expect(quantile([10, 20], 0.8)).toBeCloseTo(18, 12);
    expect(quantile([7], 0.2)).toBe(7);
    expect(quantile([1, 2, 3], 1)).toBe(3);
  });

  it('refuses an empty list', () => {
    expect(() => quantile([], 0.5)).toThrow(ArgumentError);
  });
});

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
    expect(() => summarize([])).toThrow(ArgumentError);
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

  /**
   * The median of n draws from n ordered samples is at most the kth with probability P(Bin(n, k/n) > n/2), so that
   * which of them bounds the middle 95 % is known: of 19 the 6th (1.3 % lie below it, and 4.6 % with it), of 17 the 5th
   * (0.8 %, 3.6 %). Of the middle 90 % it would be the 7th (4.6 %, 11.8 %) and the 6th (3.6 %, 10.4 %).
   */
  it.each([
    [19, 6],
    [17, 5],
  ])('bounds the middle 95 %% of the medians of %i samples by the %ith from either end', (count, bound) => {
    const samples = Array.from({ length: count }, (_, index) => index + 1);
    const { ratio, low, high } = ratioOfMedians(samples, [2, 2]);
    expect({ ratio, low, high }).toEqual({
      ratio: (count + 1) / 4,
      low: bound / 2,
      high: (count + 1 - bound) / 2,
    });
    // The other way round, the bounds of the denominator are those of the ratio.
    const inverse = ratioOfMedians([2, 2], samples);
    expect(inverse.low).toBeCloseTo(2 / (count + 1 - bound), 12);
    expect(inverse.high).toBeCloseTo(2 / bound, 12);
  });

  it('takes of an even number of draws the mean of the two in the middle', () => {
    // Samples that lie alike around 55 have bounds that do, too.
    const samples = Array.from({ length: 10 }, (_, index) => 10 * (index + 1));
    const { low, high } = ratioOfMedians(samples, [1, 1]);
    expect(Math.abs(low + high - 110)).toBeLessThanOrEqual(5);
    expect([low, high].map((bound) => bound % 5)).toEqual([0, 0]);
  });

  it('leaves its samples as they are', () => {
    const [a, b] = [
      [3, 1, 2],
      [9, 7, 8],
    ];
    ratioOfMedians(a!, b!);
    expect([a, b]).toEqual([
      [3, 1, 2],
      [9, 7, 8],
    ]);
  });
});

it.each([[[NaN, 1, 2]], [[1, NaN, 2]], [[1, 2, NaN]]])(
  'a sample that is no number is in all of the summary of %j, as numpy has it',
  (samples) => {
    const { mean, std, median, min, max } = summarize(samples);
    expect([mean, std, median, min, max]).toEqual([NaN, NaN, NaN, NaN, NaN]);
    expect(ratioOfMedians(samples, [1])).toEqual({ ratio: NaN, low: NaN, high: NaN });
    expect(ratioOfMedians([1], samples)).toEqual({ ratio: NaN, low: NaN, high: NaN });
  },
);

it('a ratio of single samples has no interval', () => {
  for (const [a, b] of [
    [[3], [2]],
    [[3, 3], [2]],
    [[3], [2, 2]],
  ] as const) {
    const estimate = ratioOfMedians(a, b);
    expect(estimate).toEqual({ ratio: 1.5, low: NaN, high: NaN });
    expect(formatInterval(estimate)).toBe('one sample');
    expect(errorBarOf(estimate)).toEqual({});
  }
  expect(errorBarOf({ ratio: 1, low: 0.9, high: 1.1 })).toEqual({ low: 0.9, high: 1.1 });
});

it('ratioOfMedians reaches to infinity where some of the times are 0', () => {
  expect(ratioOfMedians([1, 2, 3], [0, 2, 3])).toMatchObject({ ratio: 1, high: Infinity });
});

it('ratioOfMedians over times of 0 is infinite, and its interval too', () => {
  expect(ratioOfMedians([1, 2], [0, 0])).toEqual({ ratio: Infinity, low: Infinity, high: Infinity });
  expect(ratioOfMedians([0, 0], [1, 2])).toEqual({ ratio: 0, low: 0, high: 0 });
  expect(ratioOfMedians([0, 0], [0])).toEqual({ ratio: NaN, low: NaN, high: NaN });
});

it('formatInterval gives both bounds with three decimals', () => {
  expect(formatInterval({ ratio: 1, low: 0.98149, high: 1.0426 })).toBe('0.981–1.043');
});
