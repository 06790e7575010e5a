import { expect } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Device, DType, Tensor } from '../../../src/index.ts';
import { relativeError, sample, unitRoundoff } from './samples.ts';

/** What an op and its gradient mean, in float64 by plain JavaScript. */
export interface Reference {
  readonly y: readonly number[];
  /** The gradient of each input for the gradient `g` of y; null where there is none. */
  gradients(g: readonly number[]): readonly (readonly number[] | null)[];
}

/** The dtypes that an op's cases run in, on the CPU and on a GPU alike. */
export const floatingPointDTypes: readonly DType[] = ['float64', 'float32', 'float16', 'bfloat16'];

/** The allowed errors by norm, in units of the dtype's rounding. */
export interface Tolerance {
  readonly forward?: number;
  readonly backward?: number;
}

/** Compares an op's values and gradients to the reference, in the dtype of its first input. */
export function expectReference(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  reference: (...values: number[][]) => Reference,
  { forward = 4, backward = 16 }: Tolerance = {},
): void {
  t.scope(() => {
    const leaves = inputs.map((input) =>
      t.isFloatingPoint(input.dtype) ? input.detach().requiresGrad_() : input,
    );
    const expected = reference(...inputs.map((input) => input.toFlatArray()));
    const { dtype } = inputs[0]!;
    // The reference itself is rounded in float64.
    const roundoff = unitRoundoff[dtype]! * (dtype === 'float64' ? 64 : 1);
    const y = fn(...leaves);
    expect(relativeError(y.toFlatArray(), expected.y)).toBeLessThanOrEqual(forward * roundoff);
    const g = sample(y.shape, { dtype: y.dtype, seed: 99, domain: [-1, 1] }, y.device);
    y.backward(g);
    expected.gradients(g.toFlatArray()).forEach((gradient, i) => {
      if (gradient === null) return;
      const { grad } = leaves[i]!;
      expect(grad!.dtype).toBe(leaves[i]!.dtype);
      expect(relativeError(grad!.toFlatArray(), gradient)).toBeLessThanOrEqual(backward * roundoff);
    });
  });
}

/** Finite differences in float64 of a weighted sum of fn's elements, so that no gradient cancels. */
export function expectFiniteDifferences(
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
): void {
  t.scope(() =>
    t.checkGradients((...x) => {
      const y = fn(...x);
      return t.mul(y, sample(y.shape, { dtype: 'float64', seed: 98 }, y.device));
    }, inputs),
  );
}

/** The rows of a flat list. */
export function rowsOf(values: readonly number[], columns: number): number[][] {
  return Array.from({ length: values.length / columns }, (_, i) =>
    values.slice(i * columns, (i + 1) * columns),
  );
}

export function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

export type OpenDevice = () => Device;

/** What `fn` returns, or the message of the error that it throws. */
export function outcomeOf(fn: () => unknown): string {
  try {
    return String(fn());
  } catch (error) {
    return (error as Error).message;
  }
}
