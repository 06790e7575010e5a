import { full, scope } from '@roofline/tensor-core';
import { hostCompilerVersion, openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { flashAttention } from '../src/index.ts';
import { expectAccurate } from './attempt.ts';
import { describeFlash, flash } from './flash-cases.ts';
import { type AttentionProblem, randomProblem } from './problems.ts';

/** Several heads of k and v, each of several heads of q, in several batches. */
const groups: AttentionProblem = {
  ...{ batch: 2, heads: 6, keyHeads: 2, queries: 20, keys: 23, headDimension: 16 },
  ...{ causal: true, magnitude: 1, storage: ['bnhd', 'bhnd', 'bnhd'], seed: 6 },
};

describe.skipIf(!hostCompilerVersion())('the kernels, on the emulated GPU', () => {
  const emulated = openEmulatedDevice();

  describeFlash(() => emulated, {
    problems: [groups, ...Array.from({ length: 10 }, (_, i) => randomProblem(200 + i, 90, [8, 16]))],
    dtypes: ['float32', 'bfloat16'],
  });

  /** Every size of tile, and the head dimensions between those that kernels are compiled for. */
  const sizes: readonly (readonly [
    dtype: 'float64' | 'float32' | 'float16',
    headDimension: number,
    length: number,
  ])[] = [
    // A key more than a tile, which the last query alone sees.
    ['float32', 16, 62],
    ['float64', 12, 40],
    ['float64', 128, 5],
    ['float16', 40, 40],
    ['float32', 80, 20],
    ['float32', 128, 35],
    ['float32', 256, 18],
  ];
  it.each(sizes)('are right in %s with head dimension %i', (dtype, headDimension, length) => {
    const problem: AttentionProblem = {
      ...{ batch: 1, heads: 2, keyHeads: 1, queries: length, keys: length + 3, headDimension },
      ...{ causal: true, magnitude: 1, storage: ['bnhd', 'bhnd', 'bnhd'], seed: headDimension },
    };
    expect(() => expectAccurate(flash, problem, dtype, emulated)).not.toThrow();
  });

  // float32 keeps a row's maximum and sum for its gradients, bfloat16 the log-sum-exp alone.
  it.each(['float32', 'bfloat16'] as const)('give zeros for scores of -∞ alone, in %s', (dtype) => {
    scope(() => {
      const filled = (value: number) => full([1, 1, 3, 16], value, { dtype, device: emulated });
      const values = filled(2).requiresGrad_();
      const y = flashAttention(filled(1), filled(-Infinity), values, { causal: false });
      expect(y.toFlatArray()).toEqual(new Array(48).fill(0));
      y.backward(filled(1));
      expect(values.grad!.toFlatArray()).toEqual(new Array(48).fill(0));
    });
  });
});
