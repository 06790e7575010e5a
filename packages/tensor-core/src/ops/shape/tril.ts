import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { arange } from '../creation/from-values.ts';
import { isFloatingPoint } from '../../base/dtype.ts';
import { ShapeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import { type Shape, checkWhole, formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { add } from '../elementwise/arithmetic.ts';
import { lessEqual } from '../elementwise/comparisons.ts';
import { where } from '../elementwise/where.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { offsetType } from '../../op/kernel-arguments/offset-type.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { vectorLength } from '../support/row-kernel.ts';
import { unsqueeze } from './views.ts';

interface LowerTriangleAttributes {
  readonly name: string;
  /** Elements [i, j] with j <= i + diagonal are kept. */
  readonly diagonal: number;
  readonly fill: 'zero' | 'negativeInfinity';
}

const kernel = kernelVariants(kernelSource('shape/lower_triangle.cu'), 'lower_triangle', {
  ...{ x: 'pointer', y: 'pointer', matrices: 'int64', rows: 'int32', columns: 'int32' },
  ...{ diagonal: 'int32', fill: 'float32' },
});
const maxThreads = 256;
const vectorsPerThread = 2;
const maxGridY = 65535;

const lowerTriangleOp = defineOp<LowerTriangleAttributes>({
  name: 'lowerTriangle',
  autocast: 'none',
  infer: ([x], { name, fill }) => {
    if (fill === 'negativeInfinity') requireFloatingPoint(name, 'x', x!);
    if (x!.shape.length < 2) {
      throw new ShapeError(`${name}: takes matrices [..., T, S], not ${formatShape(x!.shape)}.`);
    }
    return [{ shape: x!.shape, dtype: x!.dtype }];
  },
  gradient: ({ gradients, attributes: { diagonal } }) => [tril(gradients[0]!, diagonal)],
  reference: ([x], { diagonal, fill }) => {
    const [rows, columns] = x!.shape.slice(-2) as [number, number];
    const { device } = x!;
    const lastKept = add(arange(0, rows, 1, { device }), diagonal);
    const isKept = lessEqual(arange(0, columns, 1, { device }), unsqueeze(lastKept, 1));
    return [where(isKept, x!, fill === 'zero' ? 0 : -Infinity)];
  },
  // What is not kept is not read.
  cost: ([x], [y], { diagonal }) => ({
    flops: 0,
    bytesMoved: bytesOf([x!]) * keptFraction(x!.shape, diagonal) + bytesOf([y!]),
  }),
  variant: ({ diagonal, fill }) => `${diagonal},${fill}`,
  cuda: { kind: 'custom', launch },
  cpu: {
    kind: 'onnx',
    build: (graph, [x], { diagonal, fill }) => [
      fill === 'zero' ? lowerTriangle(graph, x!, diagonal) : masked(graph, x!, diagonal),
    ],
  },
});

/** Each matrix with zeros above the diagonal. ONNX Runtime's Trilu takes integers and bools of 8 bytes only. */
export function lowerTriangle(graph: OnnxGraph, x: OnnxValue, diagonal: number): OnnxValue {
  const wide = isFloatingPoint(x.dtype) ? x : graph.cast(x, 'int64');
  return graph.cast(graph.node('Trilu', [wide, graph.scalar('int64', diagonal)], { upper: 0 }), x.dtype);
}

/** x where elements are kept, otherwise 0 - ∞. To kept elements -0 is added, which changes nothing, not even -0 and NaN. */
export function masked(graph: OnnxGraph, x: OnnxValue, diagonal: number): OnnxValue {
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  const data = new Uint8Array(rows * columns);
  for (let i = 0; i < rows; i++) data.fill(1, i * columns, i * columns + clamp(i + diagonal + 1, columns));
  const kept = graph.constant('bool', [rows, columns], data);
  const [zero, infinity] = [graph.scalar(x.dtype, 0), graph.scalar(x.dtype, Infinity)];
  // Negated last, because ONNX Runtime's Where makes 0 of -0.
  const chosen = graph.node('Where', [kept, zero, infinity], {}, { shape: kept.shape, dtype: x.dtype });
  const added = graph.node('Neg', [chosen]);
  return graph.node('Add', [lowerTriangle(graph, x, diagonal), added], {}, x);
}

/** The fraction of a matrix's elements that have j <= i + diagonal. */
export function keptFraction(shape: Shape, diagonal: number): number {
  const [rows, columns] = shape.slice(-2) as [number, number];
  let kept = 0;
  for (let i = 0; i < rows; i++) kept += clamp(i + diagonal + 1, columns);
  return rows * columns === 0 ? 0 : kept / (rows * columns);
}

function clamp(count: number, most: number): number {
  return Math.min(Math.max(count, 0), most);
}

function launch(
  context: CudaContext,
  [x]: readonly MemoryView[],
  [y]: readonly MemoryView[],
  { diagonal, fill }: LowerTriangleAttributes,
): void {
  if (x!.size === 0) return;
  const [rows, columns] = x!.shape.slice(-2) as [number, number];
  const length = vectorLength(columns, [x!, y!]);
  const matrices = sizeOf(x!.shape.slice(0, -2));
  const vectors = (rows * columns) / length;
  const threads = Math.min(maxThreads, Math.ceil(vectors / 32) * 32);
  const blocks = Math.ceil(vectors / (threads * vectorsPerThread));
  context
    .kernel(
      kernel({ ELEMENT: storageType(x!.dtype), VECTOR_LENGTH: length, OFFSET: offsetType(rows * columns) }),
    )
    .launch(
      [blocks, Math.min(matrices, maxGridY), 1],
      threads,
      0,
      kernel.byName({
        x: x!.address,
        y: y!.address,
        matrices,
        rows,
        columns,
        // Diagonals beyond the matrix do the same, and this one fits 32 bits.
        diagonal: Math.min(Math.max(diagonal, -rows), columns),
        fill: fill === 'zero' ? 0 : -Infinity,
      }),
    );
}

/** Each matrix [T, S] of x with zeros where j > i + diagonal, a whole number. Throws a ShapeError. */
export function tril(x: Tensor, diagonal = 0, ...rest: []): Tensor {
  requireTensor('tril', x);
  refuseMore('tril', rest);
  checkWhole('tril', 'the diagonal', diagonal);
  return applyOne(lowerTriangleOp, [x], { name: 'tril', diagonal, fill: 'zero' });
}

/**
 * Attention scores [..., T, S] with -∞ where key j comes after query i: j > i + S - T, so that the last query sees every key.
 * Throws a ShapeError or DTypeError.
 */
export function causalMask(scores: Tensor, ...rest: []): Tensor {
  requireTensor('causalMask', scores);
  refuseMore('causalMask', rest);
  const [rows = 0, columns = 0] = scores.shape.slice(-2);
  const attributes = { name: 'causalMask', diagonal: columns - rows, fill: 'negativeInfinity' } as const;
  return applyOne(lowerTriangleOp, [scores], attributes);
}
