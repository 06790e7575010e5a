import {
  type DType,
  type Device,
  type DeviceSpec,
  type Generator,
  type Shape,
  type Tensor,
  keep,
  ones,
  truncatedNormal,
} from '@roofline/tensor-core';

/** Where and how a module's parameters are made. */
export interface ParameterOptions {
  readonly device?: DeviceSpec | Device;
  /** Default float32. */
  readonly dtype?: DType;
  /** The source of random weights: modules that share one draw from it in the order they are made. */
  readonly generator: Generator;
}

/** Random weights are cut at this many standard deviations. */
const cut = 3;

/** A parameter drawn from N(0, std²), cut at three standard deviations. */
export function truncatedNormalParameter(
  shape: Shape,
  std: number,
  // Callers hand on options that hold more than these.
  { device, dtype, generator }: ParameterOptions,
): Tensor {
  const range = { mean: 0, std, low: -cut * std, high: cut * std };
  return keep(truncatedNormal(shape, { device, dtype, generator, ...range, requiresGrad: true }));
}

/** A parameter of ones. */
export function onesParameter(shape: Shape, { device, dtype }: Omit<ParameterOptions, 'generator'>): Tensor {
  return keep(ones(shape, { device, dtype, requiresGrad: true }));
}
