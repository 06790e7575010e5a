import type { Device, DType, Shape, Tensor } from '../../../src/index.ts';
import { formatShape, fromTypedArray, sizeOf } from '../../../src/index.ts';
import { fromNumbers } from '../../../src/tensor/host-values.ts';
import { uniformStream } from '../../../../../tooling/uniform-stream.ts';

/** `count` numbers, evenly spread over [low, high). */
export function sampleNumbers(count: number, [low, high]: readonly [number, number], seed: number): number[] {
  const next = uniformStream(seed);
  const numbers: number[] = [];
  while (numbers.length < count) numbers.push(low + (high - low) * next());
  return numbers;
}

export function tensorOf(values: readonly number[], shape: Shape, dtype: DType, device: Device): Tensor {
  return fromTypedArray(fromNumbers(dtype, values), shape, { dtype, device });
}

/** Uniformly drawn values as a tensor, and the values it holds after rounding to its dtype. */
export function sample(
  shape: Shape,
  {
    dtype = 'float32',
    domain = [-3, 3],
    seed = 1,
  }: { dtype?: DType; domain?: readonly [number, number]; seed?: number },
  device: Device,
): Tensor {
  return tensorOf(sampleNumbers(sizeOf(shape), domain, seed), shape, dtype, device);
}

/** ‖a - b‖ / ‖b‖; NaN when either holds one where the other does not. */
export function relativeError(actual: readonly number[], expected: readonly number[]): number {
  if (actual.length !== expected.length) {
    throw new Error(`${formatShape([actual.length])} values cannot be compared with ${expected.length}`);
  }
  let [difference, norm] = [0, 0];
  expected.forEach((value, i) => {
    if (Object.is(value, actual[i]) || value === actual[i]) return;
    difference += (actual[i]! - value) ** 2;
  });
  for (const value of expected) if (Number.isFinite(value)) norm += value ** 2;
  return difference === 0 ? 0 : Math.sqrt(difference) / Math.sqrt(norm || 1);
}

/** Half the distance between 1 and the next number of a floating-point dtype. */
export const unitRoundoff: Partial<Record<DType, number>> = {
  float64: 2 ** -53,
  float32: 2 ** -24,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};
