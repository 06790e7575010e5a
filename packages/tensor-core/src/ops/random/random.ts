import { RooflineError, checkCount, checkFlag, checkNumber, checkOptions } from '@roofline/cuda/host';
import { applyLive } from '../../op/per-run-attributes.ts';
import { type TensorOptions, emptyFor } from '../creation/from-values.ts';
import { type DType, checkDType, isFloatingPoint } from '../../base/dtype.ts';
import { DTypeError } from '../../base/errors.ts';
import type { ComputeOp } from '../../op/op.ts';
import { drawFrom } from '../../tensor/random/draw.ts';
import {
  type Generator,
  type GeneratorState,
  checkGenerator,
  defaultGenerator,
} from '../../tensor/random/generator.ts';
import { inverseNormal } from '../../tensor/random/inverse-normal.ts';
import { largestBelow, largestUpTo, roundedTo } from '../../tensor/random/largest-below.ts';
import { normalCdf } from '../../tensor/random/normal-cdf.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { type Shape, checkWhole } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { randomOp } from './random-op.ts';

interface UniformAttributes extends GeneratorState {
  readonly low: number;
  readonly range: number;
  readonly bits: number;
  /** The largest result: numbers above it would be rounded to the upper bound. */
  readonly last: number;
}

const uniformOp = randomOp<UniformAttributes>({
  name: 'uniform_',
  kernel: 'random_uniform',
  parameters: { low: 'float64', range: 'float64', bits: 'int32', last: 'float64' },
  arguments: ({ low, range, bits, last }) => ({ low, range, bits, last }),
  transform: (words, values, { low, range, bits, last }) => {
    const shift = 32 - bits;
    const unit = 2 ** -bits;
    for (let i = 0; i < words.length; i++) {
      const x = (words[i]! >>> shift) * unit * range + low;
      values[i] = x > last ? last : x;
    }
  },
});

interface NormalAttributes extends GeneratorState {
  readonly mean: number;
  readonly standardDeviation: number;
  /** Φ at the lower cut, and its increase from there to the upper one. */
  readonly firstProbability: number;
  readonly probabilityRange: number;
  readonly low: number;
  readonly high: number;
}

const normalOp = randomOp<NormalAttributes>({
  name: 'normal_',
  kernel: 'random_normal',
  parameters: {
    ...{ mean: 'float64', standardDeviation: 'float64', firstProbability: 'float64' },
    ...{ probabilityRange: 'float64', low: 'float64', high: 'float64' },
  },
  arguments: ({ mean, standardDeviation, firstProbability, probabilityRange, low, high }) => {
    return { mean, standardDeviation, firstProbability, probabilityRange, low, high };
  },
  transform: (words, values, { mean, standardDeviation, firstProbability, probabilityRange, low, high }) => {
    for (let i = 0; i < words.length; i++) {
      const p = (words[i]! + 0.5) * 2 ** -32 * probabilityRange + firstProbability;
      const x = inverseNormal(p) * standardDeviation + mean;
      values[i] = x < low ? low : x > high ? high : x;
    }
  },
});

interface IntegerAttributes extends GeneratorState {
  readonly low: number;
  readonly range: number;
}

const integerOp = randomOp<IntegerAttributes>({
  name: 'integer_',
  kernel: 'random_integer',
  parameters: { low: 'float64', range: 'float64' },
  arguments: ({ low, range }) => ({ low, range }),
  transform: (words, values, { low, range }) => {
    for (let i = 0; i < words.length; i++) values[i] = low + Math.floor(words[i]! * range * 2 ** -32);
  },
});

/** Options of the random distributions. */
export interface RandomOptions extends TensorOptions {
  /** Where the numbers come from. Default: `defaultGenerator`. */
  generator?: Generator;
  /** Shorthand for `generator: new Generator(seed)`. */
  seed?: number;
}

const randomOptions: readonly (keyof RandomOptions)[] = [
  'dtype',
  'device',
  'requiresGrad',
  'generator',
  'seed',
];

function fill<A extends GeneratorState>(
  owner: string,
  op: ComputeOp<A>,
  shape: Shape,
  { generator, seed, requiresGrad, dtype, device }: RandomOptions,
  attributes: Omit<A, keyof GeneratorState>,
): Tensor {
  return scope(() => {
    const tensor = emptyFor(owner, shape, { dtype, device });
    const place = placeOf(generator, seed, tensor.size);
    if (tensor.size > 0) applyLive(op, [tensor], () => ({ ...attributes, ...place() }) as A);
    return requiresGrad ? tensor.requiresGrad_() : tensor;
  });
}

/** The place of each run's words: after those of the run before, or, for a given seed, always at the beginning. */
function placeOf(
  generator: Generator | undefined,
  seed: number | undefined,
  count: number,
): () => GeneratorState {
  if (generator === undefined && seed !== undefined) return () => ({ seed, offset: 0 });
  const draw = drawFrom(generator ?? defaultGenerator, count);
  return () => draw.take();
}

/** The names of a distribution's numbers. */
type DistributionNumber = 'low' | 'high' | 'mean' | 'std';

function checkRandomOptions(
  owner: string,
  options: RandomOptions & Partial<Record<DistributionNumber, number>>,
  numbers: readonly DistributionNumber[],
): void {
  checkOptions(owner, options, [...randomOptions, ...numbers]);
  const { dtype, requiresGrad, generator, seed } = options;
  if (dtype !== undefined) checkDType(owner, dtype);
  if (requiresGrad !== undefined) checkFlag(owner, 'requiresGrad', requiresGrad);
  if (generator !== undefined) checkGenerator(owner, generator);
  if (seed !== undefined) checkCount(owner, 'the seed', seed);
  for (const name of numbers) {
    if (options[name] !== undefined) checkNumber(owner, name, options[name]);
  }
  if ((options.std ?? 1) < 0) {
    throw new RooflineError('RANGE', `${owner}: std must not be negative, got ${options.std}.`);
  }
}

function checkOrder(owner: string, low: number, high: number): void {
  if (low <= high) return;
  throw new RooflineError('RANGE', `${owner}: low ${low} lies above high ${high}; change them over.`);
}

function floatingPointOf(op: string, { dtype = 'float32' }: RandomOptions): DType {
  if (!isFloatingPoint(dtype))
    throw new DTypeError(`${op}: takes a floating-point dtype, not ${dtype}; see randint.`);
  return dtype;
}

/** Random bits in a value of each dtype: as many as distinguish all values in the last binade below 1. */
const uniformBits: Partial<Record<DType, number>> = { float64: 32, float32: 24, float16: 11, bfloat16: 8 };

/**
 * Uniformly distributed numbers in [low, high), [0, 1) by default. Throws a ShapeError, a DTypeError for a dtype that is not
 * floating-point or cannot hold a bound, and a RooflineError (code RANGE) for bounds whose distance float64 cannot hold.
 */
export function uniform(shape: Shape, options: RandomOptions & { low?: number; high?: number } = {}): Tensor {
  checkRandomOptions('uniform', options, ['low', 'high']);
  const { low = 0, high = 1, ...rest } = options;
  checkOrder('uniform', low, high);
  const dtype = floatingPointOf('uniform', options);
  const beyond = [low, high].find((bound) => !Number.isFinite(roundedTo(dtype, bound)));
  if (beyond !== undefined) {
    throw new DTypeError(`uniform: ${beyond} is beyond what ${dtype} holds; take a wider dtype.`);
  }
  const range = high - low;
  if (range === Infinity) {
    throw new RooflineError('RANGE', `uniform: from ${low} to ${high} is further than float64 holds.`);
  }
  const last = range === 0 ? high : largestBelow(dtype, high);
  return fill(
    'uniform',
    uniformOp,
    shape,
    { ...rest, dtype },
    { low, range, bits: uniformBits[dtype]!, last },
  );
}

/** Normally distributed numbers, with mean 0 and standard deviation 1 by default. Throws a DTypeError or ShapeError. */
export function randn(shape: Shape, options: RandomOptions & { mean?: number; std?: number } = {}): Tensor {
  checkRandomOptions('randn', options, ['mean', 'std']);
  const { mean = 0, std = 1, ...rest } = options;
  const dtype = floatingPointOf('randn', options);
  return fill(
    'randn',
    normalOp,
    shape,
    { ...rest, dtype },
    {
      mean,
      standardDeviation: std,
      firstProbability: 0,
      probabilityRange: 1,
      low: -Infinity,
      high: Infinity,
    },
  );
}

/** Options of `truncatedNormal`. */
export interface TruncatedNormalOptions extends RandomOptions {
  /** Of the distribution before truncation. Defaults 0 and 1. */
  mean?: number;
  std?: number;
  /** All numbers are in [low, high], [-2, 2] by default. */
  low?: number;
  high?: number;
}

/**
 * Normally distributed numbers, conditioned on being in [low, high]. Throws a DTypeError, a ShapeError, or a RooflineError
 * (code RANGE) for bounds so far from the mean that there is nothing between them.
 */
export function truncatedNormal(shape: Shape, options: TruncatedNormalOptions = {}): Tensor {
  checkRandomOptions('truncatedNormal', options, ['mean', 'std', 'low', 'high']);
  const { mean = 0, std = 1, low = -2, high = 2, ...rest } = options;
  checkOrder('truncatedNormal', low, high);
  const dtype = floatingPointOf('truncatedNormal', options);
  const place = placeOfCuts(low, high, mean, std);
  // The bounds are rounded inwards, if there is a number between them.
  const [least, most] = [-largestUpTo(dtype, -low), largestUpTo(dtype, high)];
  const cuts = least <= most ? { low: least, high: most } : { low, high };
  return fill('truncatedNormal', normalOp, shape, { ...rest, dtype }, { mean, ...cuts, ...place });
}

/** Beyond so many standard deviations from the mean float64 cannot hold the probabilities. */
const furthestCut = 36;

/** The range of probabilities of [low, high] between 0 and 1, and what to multiply their quantiles by. */
function placeOfCuts(low: number, high: number, mean: number, std: number) {
  const between = (from: number, to: number, standardDeviation: number) => {
    const firstProbability = normalCdf(from);
    return { standardDeviation, firstProbability, probabilityRange: normalCdf(to) - firstProbability };
  };
  // All are the mean, or the bound nearest to it.
  if (std === 0) return { standardDeviation: 0, firstProbability: 0.5, probabilityRange: 0 };
  if (low < high && Math.max(low - mean, mean - high) > furthestCut * std) {
    throw new RooflineError(
      'RANGE',
      `truncatedNormal: [${low}, ${high}] lies more than ${furthestCut} standard deviations of ${std} from the mean ` +
        `${mean}, where nothing is drawn; move the cuts or the mean.`,
    );
  }
  const [from, to] = [(low - mean) / std, (high - mean) / std];
  // Above the mean, mirrored: near 1 float64 resolves probabilities only to 1e-16, near 0 far better.
  return from > 0 ? between(-to, -from, -std) : between(from, to, std);
}

/**
 * Whole numbers, uniformly distributed over low, low + 1... high - 1. int64, or int32 on request. Throws a DTypeError for
 * numbers that the dtype cannot hold, a ShapeError, or a RooflineError (code RANGE).
 */
export function randint(low: number, high: number, shape: Shape, options: RandomOptions = {}): Tensor {
  checkRandomOptions('randint', options, []);
  const { dtype = 'int64' } = options;
  if (dtype !== 'int32' && dtype !== 'int64') {
    throw new DTypeError(`randint: takes int32 or int64, not ${dtype}.`);
  }
  checkWhole('randint', 'low', low);
  checkWhole('randint', 'high', high);
  if (dtype === 'int32' && (low < -(2 ** 31) || high > 2 ** 31)) {
    throw new DTypeError(
      `randint: [${low}, ${high}) leaves int32, which holds -2^31 to 2^31 - 1; take int64.`,
    );
  }
  const range = high - low;
  if (range < 1 || range > 2 ** 32) {
    throw new RooflineError(
      'RANGE',
      `randint: [${low}, ${high}) must hold between one and 2^32 whole numbers.`,
    );
  }
  return fill('randint', integerOp, shape, { ...options, dtype }, { low, range });
}
