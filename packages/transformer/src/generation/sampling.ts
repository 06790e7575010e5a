import {
  RooflineError,
  checkCount,
  checkFunction,
  checkNumber,
  checkOptions,
  describeValue,
} from '@roofline/tensor-core';

/** How a token is drawn from the logits. */
export interface SamplingOptions {
  /**
   * Divides the logits: below 1 bolder, above 1 more even, of `Infinity` all alike that have a probability; 0 always takes
   * the likeliest. Default 1.
   */
  readonly temperature?: number;
  /** Draw only from this many of the likeliest tokens. */
  readonly topK?: number;
  /**
   * Draw only from the smallest set of likeliest tokens whose probabilities sum to at least this (nucleus
   * sampling, Holtzman et al. 2019).
   */
  readonly topP?: number;
}

/** Throws a RooflineError (code RANGE), which names `owner`, for options out of range. */
export function checkSamplingOptions(
  owner: string,
  { temperature = 1, topK = 1, topP = 1 }: SamplingOptions,
): void {
  checkNumber(owner, 'temperature', temperature, 'a number that is not negative', (value) => value >= 0);
  checkCount(owner, 'topK', topK, 1);
  checkNumber(owner, 'topP', topP, 'above 0 and at most 1', (value) => value > 0 && value <= 1);
}

/**
 * Draws a token from the softmax of `logits`. `random` gives numbers in [0, 1). With both, topK applies before
 * topP. Of equal logits the lower token counts as likelier. Throws a RooflineError for logits without a finite
 * largest, NaN or -∞ alone, and for options out of range (code RANGE).
 */
export function sampleToken(
  logits: ArrayLike<number>,
  options: SamplingOptions,
  random: () => number,
): number {
  checkOptions('sampleToken', options, ['temperature', 'topK', 'topP']);
  checkSamplingOptions('sampleToken', options);
  checkFunction('sampleToken', 'random', random);
  return drawToken(logits, options, random);
}

/** The same with options that have been checked. */
export function drawToken(logits: ArrayLike<number>, options: SamplingOptions, random: () => number): number {
  if (!isListOfNumbers(logits)) {
    throw new RooflineError(
      'ARGUMENT',
      `sampleToken: the logits must be a list of numbers, not ${describeValue(logits)}.`,
    );
  }
  const { temperature = 1, topK = logits.length, topP = 1 } = options;
  const largest = largestOf(logits);
  if (temperature === 0) return Array.prototype.indexOf.call(logits, largest);
  const tokens = Array.from(logits, (_, token) => token);
  if (topK < tokens.length || topP < 1) tokens.sort((a, b) => logits[b]! - logits[a]! || a - b);
  tokens.length = Math.min(topK, tokens.length);
  const weights = tokens.map((token) => weightOf(logits[token]! - largest, temperature));
  const kept = nucleusSize(weights, topP);
  let rest = random() * sumOf(weights, kept);
  for (let i = 0; i < kept; i++) {
    rest -= weights[i]!;
    if (rest < 0) return tokens[i]!;
  }
  // Rounding can leave a rest; only tokens that can be drawn at all qualify.
  return tokens[weights.findLastIndex((weight, i) => i < kept && weight > 0)]!;
}

/** Of a logit, from its distance to the largest. -∞ has none at any temperature, though -∞ / ∞ is no number. */
function weightOf(distance: number, temperature: number): number {
  return distance === -Infinity ? 0 : Math.exp(distance / temperature);
}

function isListOfNumbers(value: unknown): value is ArrayLike<number> {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) return false;
  return !(value instanceof DataView || value instanceof BigInt64Array || value instanceof BigUint64Array);
}

function largestOf(logits: ArrayLike<number>): number {
  let largest = -Infinity;
  for (let token = 0; token < logits.length; token++) largest = Math.max(largest, logits[token]!);
  if (!Number.isFinite(largest)) {
    throw new RooflineError(
      'RANGE',
      `sampleToken: the largest of ${logits.length} logits is ${largest}, so they give no probabilities. Look for ` +
        'the step of training, or the dtype, in which the model overflowed.',
    );
  }
  return largest;
}

function nucleusSize(weights: readonly number[], topP: number): number {
  if (topP === 1) return weights.length;
  const enough = topP * sumOf(weights, weights.length);
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    sum += weights[i]!;
    if (sum >= enough) return i + 1;
  }
  return weights.length;
}

function sumOf(weights: readonly number[], count: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += weights[i]!;
  return sum;
}
