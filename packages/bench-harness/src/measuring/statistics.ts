import { max, mean, median, min, sampleStandardDeviation } from 'simple-statistics';
import { z } from 'zod';
import { checkArgument, samples as someSamples } from '../check-argument.ts';
import { seededRandom } from './seeded-random.ts';

/** Samples as records hold them, of which there must be some. */
export const sampleList = z.array(z.number()).min(1, 'there are no samples');

/** Times for logarithmic axes and denominators. */
export const timeList = z
  .array(z.number().positive('a time of 0 or less was not measured'))
  .min(1, 'there are no samples');

/** A number that training may bring to NaN or infinity: JSON has neither, and both are written as null. */
export const divergingNumber = z
  .number()
  .nullable()
  .transform((value) => value ?? NaN);

/** The summary of a list of samples. `std` is the sample standard deviation, 0 for a single sample. */
export interface Summary {
  readonly count: number;
  readonly mean: number;
  readonly std: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Throws an ArgumentError for an empty list. */
export function summarize(samples: readonly number[]): Summary {
  checkArgument('summarize', 'samples', samples, someSamples);
  const values = [...samples];
  // By its place among the others NaN would be left out, or not: no order has it.
  const ofOrder = (pick: (values: number[]) => number) => (values.some(Number.isNaN) ? NaN : pick(values));
  return {
    count: values.length,
    mean: mean(values),
    std: values.length > 1 ? sampleStandardDeviation(values) : 0,
    median: ofOrder(median),
    min: ofOrder(min),
    max: ofOrder(max),
  };
}

/**
 * The value below which `share` of the samples lie, linear between neighbours, as `torch.quantile` has it. Throws an
 * ArgumentError for an empty list.
 */
export function quantile(samples: readonly number[], share: number): number {
  checkArgument('quantile', 'samples', samples, someSamples);
  const sorted = samples.toSorted((a, b) => a - b);
  const position = share * (sorted.length - 1);
  const below = sorted[Math.floor(position)]!;
  const above = sorted[Math.ceil(position)]!;
  // Between two infinite ones there is nothing to calculate.
  return below === above ? below : below + (above - below) * (position - Math.floor(position));
}

/** A ratio and the bounds of its 95 % confidence interval, NaN where there is none. */
export interface RatioEstimate {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 2000;

/** `0.981–1.043`. */
export function formatInterval({ low, high }: RatioEstimate): string {
  return Number.isNaN(low) ? NO_INTERVAL : `${low.toFixed(3)}–${high.toFixed(3)}`;
}

/** What is shown in place of an interval. */
export const NO_INTERVAL = 'one sample';

/** The bounds as the error bars of a plot; none where there are none. */
export function errorBarOf({ low, high }: RatioEstimate): { low?: number; high?: number } {
  return Number.isNaN(low) ? {} : { low, high };
}

/**
 * median(numerator) / median(denominator), with percentile-bootstrap bounds (Efron and Tibshirani, 1993,
 * chapter 13), which need no assumption on how step times are spread. The draws are seeded: equal samples
 * give equal bounds. A single sample says nothing of how far others would lie from it: there is no interval then. Throws
 * an ArgumentError for an empty list.
 */
export function ratioOfMedians(numerator: readonly number[], denominator: readonly number[]): RatioEstimate {
  checkArgument('ratioOfMedians', 'numerator', numerator, someSamples);
  checkArgument('ratioOfMedians', 'denominator', denominator, someSamples);
  const ratio = summarize(numerator).median / summarize(denominator).median;
  const isSingle = numerator.length === 1 || denominator.length === 1;
  if (isSingle || Number.isNaN(ratio)) return { ratio, low: NaN, high: NaN };
  const random = seededRandom(0x5eed);
  const [above, below] = [medianResampler(numerator, random), medianResampler(denominator, random)];
  const ratios = Array.from({ length: RESAMPLES }, () => above() / below());
  return { ratio, low: quantile(ratios, 0.025), high: quantile(ratios, 0.975) };
}

/** Gives the median of as many draws from the samples, with replacement. By their ranks, since thousands need no sorting then. */
function medianResampler(samples: readonly number[], random: () => number): () => number {
  const count = samples.length;
  const order = samples.map((_, index) => index).sort((a, b) => samples[a]! - samples[b]!);
  const ranks = new Uint32Array(count);
  order.forEach((index, rank) => (ranks[index] = rank));
  const drawn = new Uint32Array(count);
  const valueAt = (place: number) => {
    let rank = 0;
    for (let passed = drawn[0]!; passed <= place; passed += drawn[rank]!) rank++;
    return samples[order[rank]!]!;
  };
  return () => {
    drawn.fill(0);
    for (let draw = 0; draw < count; draw++) drawn[ranks[Math.floor(random() * count)]!]!++;
    const [low, high] = [valueAt(Math.ceil(count / 2) - 1), valueAt(Math.floor(count / 2))];
    return low === high ? low : (low + high) / 2;
  };
}
