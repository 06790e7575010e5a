import { describe, expect, test } from 'vitest';
import { applyOne } from '../../../../src/op/apply.ts';
import { buildMatmul } from '../../../../src/ops/matrix/matmul-graph.ts';
import type { DType } from '../../../../src/base/dtype.ts';
import { defineOp } from '../../../../src/op/op.ts';
import { type Shape, broadcastShapes, sizeOf } from '../../../../src/base/shape.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { tensorOf, transposed, valuesOf, viewOf } from '../fixtures.ts';

const matmulOp = defineOp<{ scale: number }>({
  name: 'matmul',
  autocast: 'lower',
  infer: ([a, b]) => [
    {
      shape: [
        ...broadcastShapes('matmul', a!.shape.slice(0, -2), b!.shape.slice(0, -2)),
        a!.shape.at(-2)!,
        b!.shape.at(-1)!,
      ],
      dtype: a!.dtype,
    },
  ],
  cuda: { kind: 'custom', launch: () => {} },
  cpu: {
    kind: 'onnx',
    strided: true,
    build: (graph, [a, b], { scale }, { outputs }) => [buildMatmul(graph, a!, b!, scale, outputs[0]!)],
  },
});

/** Gemm alone, which transposes its first operand itself. */
const gemmOp = defineOp<undefined>({
  name: 'gemm',
  autocast: 'lower',
  infer: ([a, b]) => [{ shape: [a!.shape[0]!, b!.shape[1]!], dtype: a!.dtype }],
  cuda: { kind: 'custom', launch: () => {} },
  cpu: {
    kind: 'onnx',
    strided: true,
    build: (graph, [a, b], _, { outputs }) => [
      graph.node('Gemm', [a!, b!], { transA: Number(a!.transposed ?? false) }, { shape: outputs[0]!.shape }),
    ],
  },
});

/** Small integers, exact in every dtype. */
function small(shape: Shape, seed: number, dtype: DType): Tensor {
  return tensorOf(
    shape,
    Array.from({ length: sizeOf(shape) }, (_, i) => ((i * 7 + seed) % 5) - 2),
    dtype,
  );
}

function expected(a: Tensor, b: Tensor, scale: number): number[] {
  const [m, k, n] = [a.shape.at(-2)!, a.shape.at(-1)!, b.shape.at(-1)!];
  const batch = broadcastShapes('expected', a.shape.slice(0, -2), b.shape.slice(0, -2));
  const [left, right] = [a, b].map((x) => {
    const lead = batch.length - (x.rank - 2);
    const strides = batch.map((_, i) => (i < lead || x.shape[i - lead] === 1 ? 0 : x.strides[i - lead]!));
    return valuesOf(
      viewOf(x, {
        shape: [...batch, ...x.shape.slice(-2)],
        strides: [...strides, ...x.strides.slice(-2)],
        offset: x.offset,
      }),
    );
  }) as [number[], number[]];
  return Array.from({ length: sizeOf(batch) * m * n }, (_, index) => {
    const [p, i, j] = [Math.floor(index / (m * n)), Math.floor(index / n) % m, index % n];
    let sum = 0;
    for (let l = 0; l < k; l++) sum += left[(p * m + i) * k + l]! * right[(p * k + l) * n + j]!;
    return scale * sum;
  });
}

/** The wrong elements of a · b, as [index, value, expected]. */
function errors(a: Tensor, b: Tensor, scale = 1): number[][] {
  const values = valuesOf(applyOne(matmulOp, [a, b], { scale }));
  return expected(a, b, scale).flatMap((wanted, i) =>
    values[i] === wanted ? [] : [[i, values[i]!, wanted]],
  );
}

const dtypes: DType[] = ['float32', 'float64', 'float16', 'bfloat16'];

describe.each(dtypes)('matmul of %s', (dtype) => {
  test('matrices, each as it is or transposed', () => {
    expect(errors(small([3, 4], 0, dtype), small([4, 5], 1, dtype))).toEqual([]);
    expect(errors(small([3, 4], 0, dtype), transposed(small([5, 4], 1, dtype)))).toEqual([]);
    expect(errors(transposed(small([4, 3], 0, dtype)), small([4, 5], 1, dtype), 2)).toEqual([]);
    expect(errors(transposed(small([4, 3], 0, dtype)), transposed(small([5, 4], 1, dtype)))).toEqual([]);
  });

  test('a matrix after a batch, each as it is or transposed', () => {
    const batches = [small([2, 3, 4], 0, dtype), transposed(small([2, 4, 3], 0, dtype))];
    const matrices = [small([4, 5], 1, dtype), transposed(small([5, 4], 1, dtype))];
    for (const a of batches) for (const b of matrices) expect(errors(a, b, 2)).toEqual([]);
  });

  test('batches, also broadcast and repeated', () => {
    expect(errors(small([2, 3, 4], 0, dtype), transposed(small([2, 5, 4], 1, dtype)), 2)).toEqual([]);
    expect(errors(small([2, 1, 3, 4], 0, dtype), transposed(small([3, 5, 4], 1, dtype)))).toEqual([]);
    const repeated = viewOf(small([4, 5], 1, dtype), { shape: [2, 4, 5], strides: [0, 5, 1], offset: 0 });
    expect(errors(small([2, 3, 4], 0, dtype), repeated)).toEqual([]);
    expect(
      errors(viewOf(small([3, 4], 0, dtype), { shape: [2, 3, 4], strides: [0, 4, 1], offset: 0 }), repeated),
    ).toEqual([]);
  });
});

describe('layouts', () => {
  const heads = (seed: number) =>
    viewOf(small([2, 6, 3, 4], seed, 'float32'), { shape: [2, 3, 6, 4], strides: [72, 4, 12, 1], offset: 0 });

  test('heads split from a sequence, in scores and in their product', () => {
    expect(errors(heads(0), transposed(heads(1)), 0.5)).toEqual([]);
    expect(errors(small([2, 3, 6, 6], 2, 'float32'), heads(1))).toEqual([]);
    expect(errors(transposed(small([2, 3, 6, 6], 2, 'float32')), heads(1))).toEqual([]);
  });

  test('slices, single rows and columns, repeated rows', () => {
    const sliced = viewOf(small([5, 8], 0, 'float32'), { shape: [5, 4], strides: [8, 1], offset: 2 });
    expect(errors(sliced, small([4, 3], 1, 'float32'))).toEqual([]);
    expect(errors(transposed(sliced), small([5, 3], 1, 'float32'))).toEqual([]);
    expect(errors(small([1, 4], 0, 'float32'), transposed(small([7, 4], 1, 'float32')))).toEqual([]);
    expect(errors(small([5, 4], 0, 'float32'), transposed(small([1, 4], 1, 'float32')))).toEqual([]);
    expect(
      errors(
        small([3, 4], 0, 'float32'),
        viewOf(small([5], 1, 'float32'), { shape: [4, 5], strides: [0, 1], offset: 0 }),
      ),
    ).toEqual([]);
    expect(
      errors(
        small([3, 4], 0, 'float32'),
        viewOf(small([4], 1, 'float32'), { shape: [4, 5], strides: [1, 0], offset: 0 }),
      ),
    ).toEqual([]);
  });

  test('an inner length of zero gives zeros', () => {
    const product = applyOne(matmulOp, [tensorOf([2, 0]), tensorOf([0, 3])], { scale: 1 });
    expect(valuesOf(product)).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

test.each([
  [16, 512, 1],
  [19, 513, 130],
  [96, 1000, 257],
])(
  'a first operand that is turned before a product of %i×%i gives the bits of Gemm',
  (rows, columns, terms) => {
    const wild = (shape: Shape, seed: number) =>
      tensorOf(
        shape,
        Array.from({ length: sizeOf(shape) }, (_, i) => Math.sin(seed + i * 1.7) * 10 ** (i % 5)),
      );
    const [a, b] = [transposed(wild([terms, rows], 1)), wild([terms, columns], 2)];
    const product = valuesOf(applyOne(matmulOp, [a, b], { scale: 1 }));
    expect(product).toEqual(valuesOf(applyOne(gemmOp, [a, b], undefined)));
    expect(new Set(product).size).toBeGreaterThan(1000);
  },
);

test('NaN and infinities of a transposed operand stay in their rows', () => {
  const [rows, columns] = [16, 512];
  const values = Array.from({ length: 2 * rows }, (_, i) => (i === 3 ? NaN : i === rows + 5 ? Infinity : 1));
  const product = valuesOf(
    applyOne(matmulOp, [transposed(tensorOf([2, rows], values)), small([2, columns], 3, 'float32')], {
      scale: 1,
    }),
  );
  const finite = (row: number) => product.slice(row * columns, (row + 1) * columns).filter(Number.isFinite);
  expect(Array.from({ length: rows }, (_, row) => finite(row).length === columns)).toEqual(
    Array.from({ length: rows }, (_, row) => row !== 3 && row !== 5),
  );
  expect(finite(3)).toEqual([]);
});
