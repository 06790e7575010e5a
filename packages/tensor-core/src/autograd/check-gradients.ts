import { fromTypedArray } from '../tensor/creation.ts';
import { AutogradError } from '../errors.ts';
import { fromNumbers } from '../tensor/host-values.ts';
import { sum } from '../ops/reduce/reductions.ts';
import { scope } from '../tensor/scope.ts';
import { formatShape } from '../tensor/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { item, toFlatArray } from '../tensor/transfer.ts';
import { backward } from './backward.ts';
import { noGrad } from './grad-mode.ts';

export interface CheckGradientsOptions {
  /** The step of the central difference. Default 1e-6, for float64. */
  epsilon?: number;
  /** The largest allowed |difference| / max(1, |gradient|). Default 1e-5. */
  tolerance?: number;
}

/**
 * Compares the gradients that backward gives with central differences, element by element, for the sum of
 * `fn(...inputs)`. Give small float64 inputs on the CPU. Throws an AutogradError that names the first element
 * that differs.
 */
export function checkGradients(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  { epsilon = 1e-6, tolerance = 1e-5 }: CheckGradientsOptions = {},
): void {
  scope(() => {
    const leaves = inputs.map((input) => copyOf(input, toFlatArray(input)).requiresGrad_());
    backward(sum(fn(...leaves)));
    leaves.forEach((leaf, which) => {
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
