import {
  type DType,
  type Device,
  type DeviceSpec,
  Generator,
  RooflineError,
  type Shape,
  type Tensor,
  checkDType,
  checkDevice,
  checkGenerator,
  checkOptions,
  defaultGenerator,
  empty,
  ones,
  truncatedNormal,
  zeros,
} from '@roofline/tensor-core';
import { isDeferring, keepDeferred, keepPart } from './building.ts';

/** Where and how a module's parameters are made. */
export interface ParameterOptions {
  readonly device?: DeviceSpec | Device;
  /** Default float32. */
  readonly dtype?: DType;
  /**
   * The source of random weights: modules that share one draw from it in the order they are made. Default: tensor-core's
   * `defaultGenerator`.
   */
  readonly generator?: Generator;
}

/** What `ParameterOptions` may hold. */
export const parameterOptions: readonly (keyof ParameterOptions)[] = ['device', 'dtype', 'generator'];

/**
 * Throws unless `options` are ones for parameters: a RooflineError for names that neither these nor `more` know (code
 * OPTION) and for what is not a generator (code ARGUMENT), a DTypeError, a DeviceError.
 */
export function checkParameterOptions(
  owner: string,
  options: Partial<ParameterOptions>,
  more: readonly string[] = [],
): void {
  checkOptions(owner, options, [...parameterOptions, ...more]);
  const { device, dtype, generator } = options;
  if (device !== undefined) checkDevice(owner, device);
  if (dtype !== undefined) checkDType(owner, dtype);
  if (generator !== undefined) checkGenerator(owner, generator);
}

/** Random weights are cut at this many standard deviations. */
const cut = 3;

/** A parameter drawn from N(0, std²), cut at three standard deviations. */
export function truncatedNormalParameter(
  shape: Shape,
  std: number,
  // Callers hand on options that hold more than these.
  { device, dtype, generator = defaultGenerator }: ParameterOptions,
): Tensor {
  const draw = (from: Generator) =>
    truncatedNormal(shape, {
      ...{ device, dtype, generator: from, requiresGrad: true },
      ...{ mean: 0, std, low: -cut * std, high: cut * std },
    });
  if (!isDeferring()) return keepPart(draw(generator));
  const { seed, offset } = generator.stateDict();
  const weight = deferred(shape, { device, dtype }, () => draw(new Generator(seed, offset)));
  generator.take(weight.size);
  return weight;
}

/** A parameter of ones. */
export function onesParameter(shape: Shape, { device, dtype }: Omit<ParameterOptions, 'generator'>): Tensor {
  const make = () => ones(shape, { device, dtype, requiresGrad: true });
  return isDeferring() ? deferred(shape, { device, dtype }, make) : keepPart(make());
}

/** A parameter of zeros. */
export function zerosParameter(shape: Shape, { device, dtype }: Omit<ParameterOptions, 'generator'>): Tensor {
  const make = () => zeros(shape, { device, dtype, requiresGrad: true });
  return isDeferring() ? deferred(shape, { device, dtype }, make) : keepPart(make());
}

function deferred(shape: Shape, options: Omit<ParameterOptions, 'generator'>, make: () => Tensor): Tensor {
  return keepDeferred(empty(shape, { ...options, requiresGrad: true }), make);
}

/** What weights are drawn from. Throws a RooflineError (code OPTION) for a seed next to a generator. */
export function seededGenerator(
  owner: string,
  seed: number | undefined,
  generator: Generator | undefined,
): Generator | undefined {
  if (seed === undefined) return generator;
  if (generator === undefined) return new Generator(seed);
  throw new RooflineError('OPTION', `${owner}: takes a seed or a generator, not both.`);
}
