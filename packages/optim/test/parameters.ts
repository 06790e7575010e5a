import {
  type Device,
  type DeviceSpec,
  type Shape,
  type Tensor,
  fromTypedArray,
  keep,
  sizeOf,
  slice,
} from '@roofline/tensor-core';
import type { GradientScaler, SteppingOptimizer } from '../src/index.ts';
import { pseudoRandom } from './reference.ts';

export function parameterOf(shape: Shape, seed: number, device: DeviceSpec | Device = 'cpu'): Tensor {
  return fromTypedArray(pseudoRandom(sizeOf(shape), seed), shape, { device, requiresGrad: true });
}

/** Gives a parameter a gradient as a backward pass would, and returns its values. */
export function setGradient(
  parameter: Tensor,
  seed: number,
  values = pseudoRandom(parameter.size, seed),
): Float32Array {
  parameter.grad?.dispose();
  parameter.grad = keep(fromTypedArray(values, parameter.shape, { device: parameter.device }));
  return values;
}

/** Tensors of these sizes as slices of one, with `gap` elements before, between and after them. */
export function slicesOfOne(sizes: readonly number[], gap: number, seed: number, device: Device) {
  let end = gap;
  const starts = sizes.map((size) => {
    const start = end;
    end += size + gap;
    return start;
  });
  const whole = fromTypedArray(pseudoRandom(end, seed), [end], { device });
  const slices = sizes.map((size, i) => keep(slice(whole, 0, starts[i], starts[i]! + size)));
  const gaps = () => {
    const values = whole.toTypedArray() as Float32Array;
    sizes.forEach((size, i) => values.fill(0, starts[i], starts[i]! + size));
    return values;
  };
  return { whole, slices, gaps };
}

/** Makes a step, and returns whether it was made. */
export function makesStep(scaler: GradientScaler, optimizer: SteppingOptimizer): boolean {
  scaler.step(optimizer);
  return !scaler.hasSkipped(optimizer);
}
