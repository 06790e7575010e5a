import { fromTypedArray, full, scope, setFloat32MatmulPrecision } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FlashKernels, flashAttention, flashAttentionWithLse, setFlashKernels } from '../src/index.ts';
import { expectAccurate, relativeError } from './attempt.ts';
import { describeFlash, flash } from './flash-cases.ts';
import { describeMasks } from './mask-cases.ts';
import { type AttentionProblem, normals, randomProblem } from './problems.ts';

/** Several heads of k and v, each of several heads of q, in several batches. */
const groups: AttentionProblem = {
  ...{ batch: 2, heads: 6, keyHeads: 2, queries: 20, keys: 23, headDimension: 16 },
  ...{ causal: true, magnitude: 1, storage: ['bnhd', 'bhnd', 'bnhd'], seed: 6 },
};

/** Rows that are aligned, but end within a vector, before what is not theirs. */
const padded: AttentionProblem = {
  ...{ batch: 1, heads: 2, keyHeads: 1, queries: 20, keys: 23, headDimension: 13 },
  ...{ causal: true, magnitude: 1, storage: ['padded', 'padded', 'padded'], seed: 7 },
};

const families: readonly FlashKernels[] = ['simt', 'mma'];

describe.skipIf(!hostCompilerVersion()).each(families)('the kernels %s, on the emulated GPU', (family) => {
  const emulated = openEmulatedDevice();
  beforeAll(() => setFlashKernels(family));
  afterAll(() => setFlashKernels('auto'));

  describeFlash(() => emulated, {
    problems: [groups, padded, ...Array.from({ length: 10 }, (_, i) => randomProblem(200 + i, 90, [8, 16]))],
    dtypes: ['float32', 'bfloat16'],
  });

  describeMasks(
    (q, k, v, causal) => flashAttentionWithLse(q, k, v, { causal, scale: 1 }),
    () => emulated,
    {
      dtypes: ['float32', 'bfloat16'],
      queries: [1, 16, 64, 70],
      sizes: [
        [3, 17],
        [37, 80],
        [70, 40],
        [3, 700],
      ],
    },
  );

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

  // One tile of queries: blocks share its keys, where kernels can.
  it.each(['float32', 'bfloat16'] as const)('are right in %s with few queries and many keys', (dtype) => {
    for (const [queries, keys] of [
      [3, 700],
      [20, 600],
    ] as const) {
      const problem: AttentionProblem = {
        ...{ batch: 1, heads: 1, keyHeads: 1, queries, keys, headDimension: 16 },
        ...{ causal: true, magnitude: 1, storage: ['bnhd', 'bhnd', 'bnhd'], seed: queries },
      };
      expect(() => expectAccurate(flash, problem, dtype, emulated)).not.toThrow();
    }
  });

  // float32 keeps a row's maximum and sum for its gradients, bfloat16 the log-sum-exp alone.
  it.each(['float32', 'bfloat16'] as const)('give zeros where all scores are -∞, in %s', (dtype) => {
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

describe.skipIf(!hostCompilerVersion())('float32 on the tensor cores of the emulated GPU', () => {
  const emulated = openEmulatedDevice();
  beforeAll(() => setFlashKernels('mma'));
  afterAll(() => setFlashKernels('auto'));

  const outputs = () =>
    scope(() => {
      const make = (seed: number) =>
        fromTypedArray(Float32Array.from(normals(40 * 16, seed)), [1, 1, 40, 16]);
      const [q, k, v] = [1, 2, 3].map((seed) => make(seed).to(emulated).requiresGrad_());
      const output = flashAttention(q!, k!, v!);
      output.backward(make(4).to(emulated));
      return [output, q!.grad!, k!.grad!, v!.grad!].map((x) => x.toFlatArray());
    });

  it('is as exact as TF32 where that is set, and no more', () => {
    const exact = outputs();
    setFloat32MatmulPrecision('high');
    try {
      const rounded = outputs();
      exact.forEach((values, i) => {
        const error = relativeError(rounded[i]!, values);
        expect(error).toBeGreaterThan(2 ** -15);
        expect(error).toBeLessThan(4 * 2 ** -11);
      });
    } finally {
      setFloat32MatmulPrecision('highest');
    }
  });

  it('has the same scores in both passes, to the last bit', () => {
    scope(() => {
      // Of one key the weight is 1, unless the gradients' scores are others than those that their maximum is of; 144 columns
      // are 160 to the backward pass.
      for (const seed of [1, 2, 3, 4, 5, 6]) {
        const make = (of: number, scale: number) =>
          fromTypedArray(Float32Array.from(normals(144, of, scale)), [1, 1, 1, 144]).to(emulated);
        const [q, k, v] = [make(seed, 12), make(seed + 10, 12), make(seed + 20, 1).requiresGrad_()];
        const gradient = make(seed + 30, 1);
        flashAttention(q, k, v, { causal: false, scale: 1 }).backward(gradient);
        // Products keep 23 bits of it.
        expect(relativeError(v.grad!.toFlatArray(), gradient.toFlatArray())).toBeLessThan(2 ** -22);
      }
    });
  });

  it('has what IEEE 754 says of infinite values', () => {
    scope(() => {
      const make = (values: number[]) => fromTypedArray(Float32Array.from(values), [1, 1, 2, 2]);
      const q = make([1, 0.3, 1, 1]).to(emulated);
      const keys = make([-Infinity, 1, 1, 1]).to(emulated);
      const values = make([5, 6, 7, Infinity]).to(emulated);
      // The first key has no weight.
      expect(flashAttention(q, keys, make([5, 6, 7, 8]).to(emulated)).toFlatArray()).toEqual([7, 8, 7, 8]);
      expect(flashAttention(q, make([1, 1, 1, 1]).to(emulated), values).toFlatArray()).toEqual([
        6,
        Infinity,
        6,
        Infinity,
      ]);
      const nan = flashAttention(make([NaN, 1, 1, 1]).to(emulated), values, values).toFlatArray();
      expect(nan.slice(0, 2)).toEqual([NaN, NaN]);
    });
  });
});
