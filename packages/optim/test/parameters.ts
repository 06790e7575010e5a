import {
  type DeviceSpec,
  type Shape,
  type Tensor,
  fromTypedArray,
  keep,
  sizeOf,
} from '@roofline/tensor-core';
import { pseudoRandom } from './reference.ts';

export function parameterOf(shape: Shape, seed: number, device: DeviceSpec = 'cpu'): Tensor {
  return fromTypedArray(pseudoRandom(sizeOf(shape), seed), shape, { device, requiresGrad: true });
}

/** Gives a parameter a gradient as a backward pass would, and returns its values. */
export function setGradient(parameter: Tensor, seed: number): Float32Array {
  const values = pseudoRandom(parameter.size, seed);
  parameter.grad?.dispose();
  parameter.grad = keep(fromTypedArray(values, parameter.shape, { device: parameter.device }));
  return values;
}
