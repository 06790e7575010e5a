import {
  type Tensor,
  cast,
  compile,
  cudaAvailable,
  fromTypedArray,
  keep,
  matmul,
  noGrad,
  transpose,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { AdamW } from '../../src/index.ts';
import { pseudoRandom, referenceAdamW, relativeError } from '../reference.ts';

type Low = 'bfloat16' | 'float16';

/** [k, m, n]: tiles of 128 × 128 over rows of 64 that are whole, cut off, tiny; several in one launch. */
const shapes = [
  [64, 128, 128],
  [200, 256, 512],
  [8, 8, 8],
  [1, 136, 8],
  [1000, 328, 1008],
  [4096, 256, 128],
] as const;
const options = { learningRate: 3e-3, betas: [0.9, 0.95] as const, eps: 1e-8, weightDecay: 0.1 };

/** Parameters, and a step by gradients dYᵀ · X of values that it rounds to `dtype`. */
function trainer(dtype: Low, optimizerOptions: Partial<typeof options> = options) {
  const weights = shapes.map(([, m, n], i) =>
    keep(fromTypedArray(pseudoRandom(m * n, i), [m, n], { device: 'cuda' })).requiresGrad_(),
  );
  const optimizer = new AdamW(weights, optimizerOptions);
  const step = (...values: Tensor[]) =>
    noGrad(() => {
      weights.forEach((w, i) => {
        const [dy, x] = [cast(values[2 * i]!, dtype), cast(values[2 * i + 1]!, dtype)];
        w.grad = keep(matmul(transpose(dy), x, { dtype: 'float32' }));
      });
      optimizer.step();
      optimizer.zeroGrad();
      return values[0]!;
    });
  return { weights, optimizer, step };
}

function valuesOf(seed: number): Tensor[] {
  return shapes.flatMap(([k, m, n], i) =>
    [m, n].map((columns, j) =>
      fromTypedArray(pseudoRandom(k * columns, 100 * seed + 2 * i + j), [k, columns], { device: 'cuda' }),
    ),
  );
}

/** dYᵀ · X in float64 of what the device multiplied. */
function exactGradient(dy: Tensor, x: Tensor, dtype: Low): Float64Array {
  const [a, b] = [dy, x].map((each) => cast(cast(cast(each, dtype), 'float32'), 'float64').to('cpu')) as [
    Tensor,
    Tensor,
  ];
  return Float64Array.from(matmul(transpose(a), b).toFlatArray());
}

describe.skipIf(!cudaAvailable())('AdamW that multiplies gradients, on a GPU', () => {
  it.each<Low>(['bfloat16', 'float16'])('of %s is as exact as eager steps', (dtype) => {
    const [eager, compiled] = [trainer(dtype), trainer(dtype)];
    const run = compile(compiled.step);
    const references = eager.weights.map((w) => {
      const p = Float64Array.from(w.toFlatArray());
      return { p, m: new Float64Array(p.length), v: new Float64Array(p.length) };
    });
    for (let step = 1; step <= 4; step++) {
      const values = valuesOf(step);
      eager.step(...values);
      run(...values);
      references.forEach((reference, i) =>
        referenceAdamW(reference, exactGradient(values[2 * i]!, values[2 * i + 1]!, dtype), step, options),
      );
    }
    const names = run
      .explain()
      .at(-1)!
      .table.map(({ op }) => op);
    expect(names).toContain('adamwByProducts');
    expect(names).not.toContain('matmul');
    references.forEach(({ p }, i) => {
      const [own, bound] = [compiled, eager].map(({ weights }) =>
        relativeError(weights[i]!.toFlatArray(), p),
      );
      expect({ shape: shapes[i], isExact: own! <= 2 * bound! + 1e-7, own, bound }).toMatchObject({
        isExact: true,
      });
    });
    run.dispose();
  });

  it('makes what is no number where its gradient is none, and nothing else', () => {
    const { weights, step } = trainer('bfloat16');
    const run = compile(step);
    for (let i = 0; i < 2; i++) run(...valuesOf(1));
    const values = valuesOf(2);
    const [k, m, n] = shapes[1];
    const dy = Float32Array.from(values[2]!.toFlatArray());
    dy[(k - 1) * m + 77] = NaN;
    run(...values.map((each, i) => (i === 2 ? fromTypedArray(dy, [k, m], { device: 'cuda' }) : each)));
    weights.forEach((w, i) => {
      const isNaN = Float64Array.from(w.toFlatArray()).map((value) => Number(Number.isNaN(value)));
      const rows = Array.from({ length: w.shape[0]! }, (_, row) =>
        isNaN.subarray(row * w.shape[1]!, (row + 1) * w.shape[1]!),
      );
      rows.forEach((row, r) =>
        expect(
          row.every((flag) => flag === Number(i === 1 && r === 77)),
          `${i}, ${r}`,
        ).toBe(true),
      );
    });
    expect(n).toBe(512);
    run.dispose();
  });

  it('gives the same bits each time', () => {
    const results = [0, 1].map(() => {
      const { weights, step } = trainer('bfloat16');
      const run = compile(step);
      for (let i = 0; i < 5; i++) run(...valuesOf(i));
      run.dispose();
      return weights.map((w) => Buffer.from(w.toTypedArray().buffer));
    });
    results[0]!.forEach((bytes, i) => expect(Buffer.compare(bytes, results[1]![i]!)).toBe(0));
  });
});
