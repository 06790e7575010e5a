import {
  type DType,
  type Device,
  type Tensor,
  cast,
  expand,
  fromTypedArray,
  scope,
  slice,
  transpose,
} from '@roofline/tensor-core';
import { uniformStream } from '../../../tooling/uniform-stream.ts';
import type { AttentionSizes } from '../src/operands.ts';

/** How an operand lies in memory. */
export const storages = ['bhnd', 'bnhd', 'sliced', 'transposed', 'expanded', 'padded'] as const;

export interface AttentionProblem extends AttentionSizes {
  readonly causal: boolean;
  readonly scale?: number;
  /** Of the elements of q, k and v. */
  readonly magnitude: number;
  /** Of q, k and v. */
  readonly storage: readonly (typeof storages)[number][];
  readonly seed: number;
}

/** Problem number `seed` with sequences up to `longest`. */
export function randomProblem(
  seed: number,
  longest: number,
  dimensions: readonly number[],
): AttentionProblem {
  const next = uniformStream(1000 + seed);
  const choose = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)]!;
  const keyHeads = choose([1, 1, 2, 3]);
  const length = () => 1 + Math.floor(next() ** 2 * longest);
  const queries = length();
  return {
    batch: choose([1, 2]),
    heads: keyHeads * choose([1, 1, 2, 3]),
    keyHeads,
    queries,
    keys: next() < 0.5 ? queries : length(),
    headDimension: choose(dimensions),
    causal: next() < 0.6,
    scale: choose([undefined, undefined, 0.3, -0.2]),
    magnitude: choose([1, 1, 1, 4, 12, 1e-3]),
    storage: [choose(storages), choose(storages), choose(storages)],
    seed,
  };
}

export function describeProblem(problem: AttentionProblem): string {
  const { batch, heads, keyHeads, queries, keys, headDimension, causal, magnitude, storage, scale } = problem;
  return (
    `b${batch} h${heads}/${keyHeads} n${queries}/${keys} d${headDimension}${causal ? ' causal' : ''} ×${magnitude} ` +
    `${storage.join()}${scale === undefined ? '' : ` scale ${scale}`}`
  );
}

/** Normally distributed numbers (Box & Muller 1958). */
export function normals(count: number, seed: number, deviation = 1): Float64Array {
  const next = uniformStream(seed);
  const values = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    values[i] = deviation * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  }
  return values;
}

/** A tensor of `values`, given in the order of its shape, stored in another. */
export function storedAs(
  storage: (typeof storages)[number],
  values: Float64Array,
  shape: readonly number[],
  dtype: DType,
  device: Device,
): Tensor {
  const [batch, heads, length, dimension] = shape as [number, number, number, number];
  const make = (from: Float64Array, of: readonly number[]) =>
    cast(fromTypedArray(from, of, { dtype: 'float64' }), dtype).to(device);
  const reordered = (
    of: readonly number[],
    index: (b: number, h: number, n: number, d: number) => number,
  ) => {
    const stored = new Float64Array(of.reduce((product, each) => product * each, 1)).fill(NaN);
    let i = 0;
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let n = 0; n < length; n++)
          for (let d = 0; d < dimension; d++) stored[index(b, h, n, d)] = values[i++]!;
    return make(stored, of);
  };
  return scope(() => {
    switch (storage) {
      case 'bhnd':
        return make(values, shape);
      case 'bnhd':
        return transpose(
          reordered(
            [batch, length, heads, dimension],
            (b, h, n, d) => ((b * length + n) * heads + h) * dimension + d,
          ),
          1,
          2,
        );
      case 'transposed':
        return transpose(
          reordered(
            [batch, heads, dimension, length],
            (b, h, n, d) => ((b * heads + h) * dimension + d) * length + n,
          ),
        );
      case 'sliced':
        return slice(
          slice(
            reordered(
              [batch, heads, 2 * length + 1, dimension + 3],
              (b, h, n, d) => ((b * heads + h) * (2 * length + 1) + 2 * n + 1) * (dimension + 3) + d + 2,
            ),
            2,
            1,
            2 * length + 1,
            2,
          ),
          3,
          2,
          dimension + 2,
        );
      case 'padded': {
        // Rows begin at multiples of 16 bytes, and end where their columns do.
        const width = 8 * Math.ceil(dimension / 8) + 8;
        const stored = reordered(
          [batch, heads, length, width],
          (b, h, n, d) => ((b * heads + h) * length + n) * width + d,
        );
        return slice(stored, 3, 0, dimension);
      }
      case 'expanded':
        // One head for all.
        return expand(make(values.subarray(0, length * dimension), [1, 1, length, dimension]), shape);
    }
  });
}

/** q, k and v of a problem, detached. */
export function operandsOf(
  problem: AttentionProblem,
  dtype: DType,
  device: Device,
): [Tensor, Tensor, Tensor] {
  const { batch, heads, keyHeads, queries, keys, headDimension, magnitude, storage, seed } = problem;
  const shapes = [
    [batch, heads, queries, headDimension],
    [batch, keyHeads, keys, headDimension],
    [batch, keyHeads, keys, headDimension],
  ];
  return shapes.map((shape, i) => {
    const values = normals(shape[0]! * shape[1]! * shape[2]! * shape[3]!, 31 * seed + i, magnitude);
    return storedAs(storage[i]!, values, shape, dtype, device);
  }) as [Tensor, Tensor, Tensor];
}
