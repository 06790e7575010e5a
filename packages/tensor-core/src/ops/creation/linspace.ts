import { checkNumber, describeValue } from '@roofline/cuda/host';
import { type TensorOptions, checkTensorOptions, fromElements, mostNumbers } from './from-values.ts';
import { isFloatingPoint } from '../../base/dtype.ts';
import { fromFunction } from '../../tensor/host-values.ts';
import { ShapeError } from '../../base/errors.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/**
 * `steps` evenly spaced numbers from `start` to `end`, both included; only `start` for one step. Calculated in float64 and
 * rounded to the dtype, float32 by default; truncated for integers. Throws a ShapeError.
 */
export function linspace(start: number, end: number, steps: number, options: TensorOptions = {}): Tensor {
  const known = checkTensorOptions('linspace', options);
  checkNumber('linspace', 'the start', start);
  checkNumber('linspace', 'the end', end);
  if (!Number.isInteger(steps) || steps < 0 || steps > mostNumbers) {
    throw new ShapeError(
      `linspace: takes a whole number of steps from 0 to 2^32 - 1, not ${describeValue(steps)}.`,
    );
  }
  const dtype = known.dtype ?? 'float32';
  const distance = steps > 1 ? (end - start) / (steps - 1) : 0;
  // From the nearer end, so that both ends are exact.
  const at = (i: number) => (i < steps / 2 ? start + i * distance : end - (steps - 1 - i) * distance);
  const rounded = isFloatingPoint(dtype) ? at : (i: number) => Math.trunc(at(i));
  return fromElements('linspace', fromFunction(dtype, steps, rounded, 'linspace'), [steps], dtype, known);
}
