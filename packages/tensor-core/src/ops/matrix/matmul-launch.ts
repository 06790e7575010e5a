import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { MemoryView, TensorSpec } from '../../base/memory-view.ts';
import { byteSize } from '../../base/dtype.ts';
import { type Shape, broadcastStrides, contiguousStrides, sizeOf } from '../../base/shape.ts';

/** How a product is calculated. */
export interface ProductAttributes {
  /** Multiplies the product. */
  readonly scale: number;
  /** Whether b is given as its transpose, as a linear layer's weight is: a · bᵀ. */
  readonly transposeB?: boolean;
}

const noBatch: Shape = [];

export function isMatrix({ shape }: TensorSpec): boolean {
  return shape.length === 2;
}

/**
 * Queues d = scale · a · b, and + c if it is given, of d's shape and dtype; c, which may be d, and d are contiguous. Operands
 * that no pitch describes are copied.
 */
export function launchMatmul(
  context: CudaContext,
  inputs: readonly MemoryView[],
  outputs: readonly MemoryView[],
  { scale, transposeB = false }: ProductAttributes,
): void {
  const [a, b, c] = inputs as readonly [MemoryView, MemoryView, MemoryView?];
  const [d] = outputs as readonly [MemoryView];
  if (d.size === 0) return;
  const n = d.shape.at(-1)!;
  const k = a.shape.at(-1)!;
  if (k === 0 && c) {
    if (c.address !== d.address) context.copy(c, d);
    return;
  }
  // A batch times one matrix is a single larger product.
  const isJoined = isMatrix(b);
  const m = isJoined ? d.size / n : d.shape.at(-2)!;
  const batchShape = isJoined ? noBatch : d.shape.slice(0, -2);
  const left = isJoined ? joinedOperandOf(context, a, m) : operandOf(context, a, batchShape);
  const right = operandOf(context, b, batchShape);
  context.matmul({
    m,
    n,
    k,
    batch: sizeOf(batchShape),
    inputDType: a.dtype,
    outputDType: d.dtype,
    a: left.address,
    b: right.address,
    d: d.address,
    ...(c && { c: c.address }),
    transposeA: left.transposed,
    transposeB: right.transposed !== transposeB,
    pitchA: left.pitch,
    pitchB: right.pitch,
    pitchD: n,
    batchStrideA: left.batchStride,
    batchStrideB: right.batchStride,
    batchStrideD: m * n,
    scale,
  });
}

interface Operand {
  readonly address: number;
  readonly transposed: boolean;
  readonly pitch: number;
  readonly batchStride: number;
}

/** `x` as a library with one pitch and one batch stride can read it; copied if it cannot. */
function operandOf(context: CudaContext, x: MemoryView, batchShape: Shape): Operand {
  const rows = x.shape.at(-2)!;
  const batchStride = singleStride(x, 2, batchShape);
  if (batchStride === null) return copied(context, x, [...batchShape, rows, x.shape.at(-1)!], batchShape);
  return asItLies(x, rows, x.strides.at(-2)!, batchStride) ?? copied(context, x, x.shape, batchShape);
}

/** The same with all `rows` of a batch as one matrix. */
function joinedOperandOf(context: CudaContext, x: MemoryView, rows: number): Operand {
  const rowStride = singleStride(x, 1, x.shape.slice(0, -1));
  const operand = rowStride === null ? null : asItLies(x, rows, rowStride, 0);
  return operand ?? copied(context, x, x.shape, noBatch);
}

/** Matrices of so many rows, not copied; null unless their rows or columns are dense. */
function asItLies(x: MemoryView, rows: number, rowStride: number, batchStride: number): Operand | null {
  const columns = x.shape.at(-1)!;
  const columnStride = x.strides.at(-1)!;
  if (fits(columnStride, columns, rowStride, rows)) {
    return { address: x.address, transposed: false, pitch: Math.max(rowStride, columns), batchStride };
  }
  if (fits(rowStride, rows, columnStride, columns)) {
    return { address: x.address, transposed: true, pitch: Math.max(columnStride, rows), batchStride };
  }
  return null;
}

/** A contiguous copy, broadcast to `shape` where one stride cannot walk the batch dimensions. */
function copied(context: CudaContext, x: MemoryView, shape: Shape, batchShape: Shape): Operand {
  const strides = contiguousStrides(shape);
  const address = context.workspace(sizeOf(shape) * byteSize(x.dtype));
  const repeated = broadcastStrides(x.shape, x.strides, shape);
  context.copy(
    { address: x.address, dtype: x.dtype, shape, strides: repeated },
    { address, dtype: x.dtype, shape, strides },
  );
  const batchStride = singleStride({ shape, strides }, 2, batchShape)!;
  return { address, transposed: false, pitch: shape.at(-1)!, batchStride };
}

/** Whether lines of `inner` dense elements are `outerStride` elements apart. */
function fits(innerStride: number, inner: number, outerStride: number, outer: number): boolean {
  return (innerStride === 1 || inner === 1) && (outerStride >= inner || outer === 1);
}

/** The single stride that walks all but the last `inner` dimensions, broadcast to `outer`, in row-major order; or null. */
function singleStride(
  { shape, strides }: { shape: Shape; strides: Shape },
  inner: number,
  outer: Shape,
): number | null {
  const lead = outer.length - (shape.length - inner);
  let stride: number | null = null;
  let covered = 1;
  for (let i = outer.length - 1; i >= 0; i--) {
    const length = outer[i]!;
    if (length === 1) continue;
    const repeats = i < lead || shape[i - lead] === 1;
    const walked = repeats ? 0 : strides[i - lead]!;
    if (stride === null) stride = walked;
    else if (walked !== stride * covered) return null;
    covered *= length;
  }
  return stride ?? 0;
}
