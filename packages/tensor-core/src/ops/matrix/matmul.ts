import type { MemoryView } from '../../op/memory-view.ts';
import type { TensorSpec } from '../../op/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { buildMatmul } from '../../devices/cpu/lowering/matmul-graph.ts';
import { bytesOf } from '../../op/cost.ts';
import { type DType, byteSize, checkDType, checkElement } from '../../tensor/dtype.ts';
import { checkOptions } from '../../op/check-options.ts';
import { DTypeError, ShapeError } from '../../errors.ts';
import { defineOp } from '../../op/op.ts';
import {
  type Shape,
  broadcastShapes,
  broadcastStrides,
  contiguousStrides,
  formatShape,
  sizeOf,
} from '../../tensor/shape.ts';
import { scope } from '../../tensor/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { reshape, transpose, unsqueeze } from '../shape/views.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';

interface MatmulAttributes {
  /** Multiplies the product. */
  readonly scale: number;
  /** Of the result, where it is not the operands'. */
  readonly dtype?: DType;
}

function productShape(a: Shape, b: Shape): Shape {
  const [m, k] = a.slice(-2);
  const [kOfB, n] = b.slice(-2);
  if (k !== kOfB) {
    throw new ShapeError(
      `matmul: ${formatShape(a)} · ${formatShape(b)}: the last dimension of the first, ${k}, must equal the ` +
        `second-last of the second, ${kOfB}.`,
    );
  }
  return [...broadcastShapes('matmul', a.slice(0, -2), b.slice(0, -2)), m!, n!];
}

const matmulOp = defineOp<MatmulAttributes>({
  name: 'matmul',
  autocast: 'lower',
  infer: ([a, b], { dtype = a!.dtype }) => {
    requireFloatingPoint('matmul', 'the first operand', a!);
    requireFloatingPoint('matmul', 'the second operand', b!);
    if (a!.dtype !== b!.dtype) {
      throw new DTypeError(
        `matmul: operands are ${a!.dtype} and ${b!.dtype}; cast() one to the other's dtype.`,
      );
    }
    if (dtype !== a!.dtype && (dtype !== 'float32' || a!.dtype === 'float64')) {
      throw new DTypeError(
        `matmul: a product of ${a!.dtype} operands is ${a!.dtype} or, of low precision, float32; not ${dtype}.`,
      );
    }
    return [{ shape: productShape(a!.shape, b!.shape), dtype }];
  },
  saves: (needs) => ({ inputs: [...(needs[1] ? [0] : []), ...(needs[0] ? [1] : [])] }),
  gradient: ({ gradients, input, needs, inputSpecs, attributes: { scale } }) => {
    const g = gradients[0]!;
    return [
      needs[0] ? gradientProduct(g, transpose(input(1)), scale, inputSpecs[0]!) : null,
      // As the transpose of its own transpose: the usual second operand is a weight seen transposed, whose
      // gradient then comes out in the weight's own layout.
      needs[1] ? transpose(gradientProduct(transpose(g), input(0), scale, inputSpecs[1]!)) : null,
    ];
  },
  // As JSON Infinity and NaN would be one.
  variant: ({ scale }) => `${scale}`,
  cost: (inputs, outputs) => ({
    flops: 2 * sizeOf(outputs[0]!.shape) * inputs[0]!.shape.at(-1)!,
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    boundBy: 'tensorCores',
  }),
  cuda: {
    kind: 'custom',
    strided: true,
    launch(context, [a, b], [d], { scale }) {
      const [m, n] = d!.shape.slice(-2) as [number, number];
      const k = a!.shape.at(-1)!;
      if (d!.size === 0) return;
      const batchShape = d!.shape.slice(0, -2);
      const left = operandOf(context, a!, batchShape);
      const right = operandOf(context, b!, batchShape);
      context.matmul({
        m,
        n,
        k,
        batch: sizeOf(batchShape),
        inputDType: a!.dtype,
        outputDType: d!.dtype,
        a: left.address,
        b: right.address,
        d: d!.address,
        transposeA: left.transposed,
        transposeB: right.transposed,
        pitchA: left.pitch,
        pitchB: right.pitch,
        pitchD: n,
        batchStrideA: left.batchStride,
        batchStrideB: right.batchStride,
        batchStrideD: m * n,
        scale,
        accumulate: false,
      });
    },
  },
  cpu: {
    kind: 'onnx',
    strided: true,
    build: (graph, [a, b], { scale }, { outputs }) => [buildMatmul(graph, a!, b!, scale, outputs[0]!)],
  },
});

/** A product for the gradient of an input: a float32 input that was multiplied as a cast gets its sums unrounded. */
function gradientProduct(g: Tensor, operand: Tensor, scale: number, input: TensorSpec): Tensor {
  const unrounded = input.dtype === 'float32' && operand.dtype !== 'float32';
  return matmul(cast(g, operand.dtype), operand, unrounded ? { scale, dtype: 'float32' } : { scale });
}

interface Operand {
  readonly address: number;
  readonly transposed: boolean;
  readonly pitch: number;
  readonly batchStride: number;
}

/** How a library that takes one pitch and one batch stride can read `x`; copies it where it cannot. */
function operandOf(context: CudaContext, x: MemoryView, batchShape: Shape): Operand {
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  const [rowStride, columnStride] = x.strides.slice(-2) as [number, number];
  const batchStride = singleStride(x, batchShape);
  if (batchStride !== null) {
    const address = x.address;
    if (fits(columnStride, columns, rowStride, rows)) {
      return { address, transposed: false, pitch: Math.max(rowStride, columns), batchStride };
    }
    if (fits(rowStride, rows, columnStride, columns)) {
      return { address, transposed: true, pitch: Math.max(columnStride, rows), batchStride };
    }
  }
  return copied(context, x, batchStride === null ? [...batchShape, rows, columns] : x.shape, batchShape);
}

/** A contiguous copy, repeated to `shape` where its own batch dimensions cannot be walked by one stride. */
function copied(context: CudaContext, x: MemoryView, shape: Shape, batchShape: Shape): Operand {
  const strides = contiguousStrides(shape);
  const address = context.workspace(sizeOf(shape) * byteSize(x.dtype));
  const repeated = broadcastStrides(x.shape, x.strides, shape);
  context.copy(
    { address: x.address, dtype: x.dtype, shape, strides: repeated },
    { address, dtype: x.dtype, shape, strides },
  );
  const batchStride = singleStride({ shape, strides }, batchShape)!;
  return { address, transposed: false, pitch: shape.at(-1)!, batchStride };
}

// Whether lines of `inner` dense elements follow one another every `outerStride` elements.
function fits(innerStride: number, inner: number, outerStride: number, outer: number): boolean {
  return (innerStride === 1 || inner === 1) && (outerStride >= inner || outer === 1);
}

/** The one stride that walks the batch dimensions in row-major order, or null. */
function singleStride(
  { shape, strides }: { shape: Shape; strides: Shape },
  batchShape: Shape,
): number | null {
  const walked = broadcastStrides(shape.slice(0, -2), strides.slice(0, -2), batchShape);
  let stride: number | null = null;
  let covered = 1;
  for (let i = batchShape.length - 1; i >= 0; i--) {
    if (batchShape[i] === 1) continue;
    if (stride === null) stride = walked[i]!;
    else if (walked[i] !== stride * covered) return null;
    covered *= batchShape[i]!;
  }
  return stride ?? 0;
}

export interface MatmulOptions {
  /** Multiplies the product. Default 1. */
  scale?: number;
  /** Of the result. Default the operands', or the one that autocast gives them. */
  dtype?: DType;
}

/**
 * The matrix product over the last two dimensions, batched and broadcast over the others as torch.matmul does:
 * [..., m, k] · [..., k, n] -> [..., m, n], times `scale`. A transposed view is read as it lies, without a copy.
 * A one-dimensional operand is a row before and a column behind the other, and loses that dimension again, so two
 * give a scalar. `dtype: 'float32'` keeps the sums of low-precision operands as they are, unrounded. Operands are
 * floating-point: no device multiplies matrices of integers. Throws ShapeError and DTypeError.
 */
export function matmul(a: Tensor, b: Tensor, options?: MatmulOptions): Tensor {
  requireTensor('matmul', a);
  requireTensor('matmul', b);
  const attributes = attributesOf(options);
  if (a.rank === 0 || b.rank === 0) {
    throw new ShapeError(
      `matmul: ${formatShape(a.shape)} · ${formatShape(b.shape)}: operands need a dimension; use mul().`,
    );
  }
  if (a.rank > 1 && b.rank > 1) return product(a, b, attributes);
  return scope(() => {
    const rows = a.rank === 1 ? unsqueeze(a, 0) : a;
    const columns = b.rank === 1 ? unsqueeze(b, 1) : b;
    const result = product(rows, columns, attributes);
    const shape = result.shape.slice(0, -2);
    if (a.rank > 1) shape.push(result.shape.at(-2)!);
    if (b.rank > 1) shape.push(result.shape.at(-1)!);
    return reshape(result, shape);
  });
}

const unscaled: MatmulAttributes = { scale: 1 };

function attributesOf(options: MatmulOptions | undefined): MatmulAttributes {
  if (options === undefined) return unscaled;
  checkOptions('matmul', options, ['scale', 'dtype']);
  const { scale = 1, dtype } = options;
  checkElement('matmul', 'float64', scale);
  if (dtype === undefined) return { scale };
  checkDType('matmul', dtype);
  return { scale, dtype };
}

/** Of operands of at least two dimensions. A matrix behind a batch makes one larger product of it. */
function product(a: Tensor, b: Tensor, attributes: MatmulAttributes): Tensor {
  if (a.rank === 2 || b.rank > 2) return applyOne(matmulOp, [a, b], attributes);
  const shape = productShape(a.shape, b.shape);
  const rows = sizeOf(shape.slice(0, -1));
  return scope(() =>
    reshape(applyOne(matmulOp, [reshape(a, [rows, a.shape.at(-1)!]), b], attributes), shape),
  );
}

/** x · weightᵀ: [..., in] with a weight [out, in] gives [..., out]. */
export function linear(x: Tensor, weight: Tensor, ...rest: []): Tensor {
  requireTensor('linear', x);
  requireTensor('linear', weight);
  refuseMore('linear', rest);
  return scope(() => matmul(x, transpose(weight)));
}
