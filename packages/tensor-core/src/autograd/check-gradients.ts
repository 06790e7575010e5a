import { requireTensors, requireTensor } from '../op/require-tensor.ts';
import { checkFunction, checkNumber, checkOptions } from '@roofline/cuda/host';
import { fromTypedArray } from '../ops/creation/from-values.ts';
import { AutogradError } from '../base/errors.ts';
import { isFloatingPoint } from '../base/dtype.ts';
import { fromNumbers } from '../tensor/host-values.ts';
import { sum } from '../ops/reduce/reductions.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import { formatShape } from '../base/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { item, toFlatArray } from '../ops/transfer.ts';
import { backward } from './backward.ts';
import { noGrad } from '../tensor/tape/grad-mode.ts';

/** Options of `checkGradients`. */
export interface CheckGradientsOptions {
  /** The step of the central difference. Default 1e-6, for float64. */
  epsilon?: number;
  /** The largest allowed |difference| / max(1, |gradient|). Default 1e-5. */
  tolerance?: number;
}

/**
 * Compares the gradients that backward gives with central differences, element by element, for the sum of `fn(...inputs)`. Use
 * small float64 inputs on the CPU: float32 differences have few digits and need options of their own. Integers and bools are
 * passed on as they are. Throws an AutogradError that names the first element that differs.
 */
export function checkGradients(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  options?: CheckGradientsOptions,
): void {
  if (options !== undefined) checkOptions('checkGradients', options, ['epsilon', 'tolerance']);
  const { epsilon = 1e-6, tolerance = 1e-5 } = options ?? {};
  checkFunction('checkGradients', 'the function', fn);
  requireTensors('checkGradients', inputs);
  if (inputs.length === 0) throw new AutogradError('checkGradients: there are no inputs to check; give one.');
  checkNumber('checkGradients', 'epsilon', epsilon, 'a positive number', isPositive);
  checkNumber('checkGradients', 'tolerance', tolerance, 'a positive number', isPositive);
  inputs.forEach((input, which) => checkPrecision(input, which, options));
  scope(() => {
    const leaves = inputs.map((input) =>
      isFloatingPoint(input.dtype) ? copyOf(input, toFlatArray(input)).requiresGrad_() : input,
    );
    const result = fn(...leaves);
    requireTensor('checkGradients: the function', result);
    backward(sum(result));
    leaves.forEach((leaf, which) => {
      if (!isFloatingPoint(leaf.dtype)) return;
      const gradient = leaf.grad ? toFlatArray(leaf.grad) : new Array<number>(leaf.size).fill(0);
      const values = toFlatArray(inputs[which]!);
      gradient.forEach((analytic, element) => {
        const numeric = centralDifference(fn, inputs, which, values, element, epsilon);
        if (!(Math.abs(analytic - numeric) <= tolerance * Math.max(1, Math.abs(numeric)))) {
          throw new AutogradError(
            `checkGradients: input ${which} ${formatShape(leaf.shape)}, element ${element}: ` +
              `backward gives ${analytic}, finite differences ${numeric}.`,
          );
        }
      });
    });
  });
}

function isPositive(value: number): boolean {
  return value > 0 && value < Infinity;
}

/** The defaults are for float64: narrower inputs cannot hold so small a step. */
function checkPrecision({ dtype }: Tensor, which: number, options: CheckGradientsOptions | undefined): void {
  if (!isFloatingPoint(dtype) || dtype === 'float64') return;
  if (options?.epsilon !== undefined && options.tolerance !== undefined) return;
  throw new AutogradError(
    `checkGradients: input ${which} is ${dtype}, whose differences are mostly rounding; cast() it to float64, or ` +
      'give both epsilon and tolerance.',
  );
}

function centralDifference(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  which: number,
  values: readonly number[],
  element: number,
  epsilon: number,
): number {
  const at = (step: number) =>
    noGrad(() =>
      scope(() => {
        const moved = copyOf(inputs[which]!, values.with(element, values[element]! + step));
        return item(sum(fn(...inputs.map((input, i) => (i === which ? moved : input)))));
      }),
    );
  return (at(epsilon) - at(-epsilon)) / (2 * epsilon);
}

function copyOf(like: Tensor, values: readonly number[]): Tensor {
  return fromTypedArray(fromNumbers(like.dtype, values), like.shape, {
    dtype: like.dtype,
    device: like.device,
  });
}
