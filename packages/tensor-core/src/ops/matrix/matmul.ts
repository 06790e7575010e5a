import type { TensorSpec } from '../../base/memory-view.ts';
import { applyOne } from '../../op/apply.ts';
import { buildMatmul } from './matmul-graph.ts';
import { bytesOf } from '../../op/cost.ts';
import { type DType, byteSize, checkDType, checkElement } from '../../base/dtype.ts';
import { checkOptions } from '@roofline/cuda/host';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { type Shape, broadcastShapes, formatShape, sizeOf } from '../../base/shape.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { contiguous } from '../copy/contiguous.ts';
import { reshape, transpose, unsqueeze } from '../shape/views.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { type ProductAttributes, isMatrix, launchMatmul } from './matmul-launch.ts';

export interface MatmulAttributes extends ProductAttributes {
  /** The result's dtype, if it is not the operands'. */
  readonly dtype?: DType;
  /** Whether the second operand is stored column by column, so that its gradient should be, too. */
  readonly columnsOfB?: boolean;
}

/** The shape of `linear`, where b is a weight [out, in]. */
function linearShape(x: Shape, weight: Shape): Shape {
  if (x.at(-1) !== weight.at(-1)) {
    throw new ShapeError(
      `linear: ${formatShape(x)} with a weight ${formatShape(weight)}: the last dimensions, ${x.at(-1)} and ` +
        `${weight.at(-1)}, must be equal.`,
    );
  }
  return [...x.slice(0, -1), weight.at(-2)!];
}

function productShape(a: Shape, b: Shape): Shape {
  const k = a.at(-1)!;
  const kOfB = b.at(-2)!;
  if (k !== kOfB) {
    throw new ShapeError(
      `matmul: ${formatShape(a)} · ${formatShape(b)}: the last dimension of the first, ${k}, must equal the ` +
        `second-last of the second, ${kOfB}.`,
    );
  }
  return [...broadcastShapes('matmul', a.slice(0, -2), b.slice(0, -2)), a.at(-2)!, b.at(-1)!];
}

export const matmulOp: ComputeOp<MatmulAttributes> = defineOp<MatmulAttributes>({
  name: 'matmul',
  autocast: 'lower',
  infer: ([a, b], { dtype = a!.dtype, transposeB }) => {
    const name = transposeB ? 'linear' : 'matmul';
    requireFloatingPoint(name, 'the first operand', a!);
    requireFloatingPoint(name, 'the second operand', b!);
    if (a!.dtype !== b!.dtype) {
      throw new DTypeError(
        `${name}: operands are ${a!.dtype} and ${b!.dtype}; cast() one to the other's dtype.`,
      );
    }
    if (dtype !== a!.dtype && (dtype !== 'float32' || a!.dtype === 'float64')) {
      throw new DTypeError(
        `matmul: a product of ${a!.dtype} operands is ${a!.dtype} or, of low precision, float32; not ${dtype}.`,
      );
    }
    return [{ shape: (transposeB ? linearShape : productShape)(a!.shape, b!.shape), dtype }];
  },
  saves: (needs) => ({ inputs: [...(needs[1] ? [0] : []), ...(needs[0] ? [1] : [])] }),
  gradient: ({ gradients, input, needs, inputSpecs, destination, attributes }) => {
    const { scale, transposeB, columnsOfB } = attributes;
    const [specA, specB] = inputSpecs as [TensorSpec, TensorSpec];
    const rowsOf = (x: Tensor) => (isMatrix(specB) ? joinRows(x) : x);
    const g = isMatrix(specB) ? joinable(gradients[0]!) : gradients[0]!;
    const product = (x: Tensor, y: Tensor, spec: TensorSpec, into: Tensor | null = null) =>
      gradientProduct(x, y, scale, spec, into);
    const gradientOfA = () => product(g, transposeB ? input(1) : transpose(input(1)), specA, destination(0));
    // In the layout of b. Rows of the first operand may differ in magnitude at no cost to float32's kernel, as those
    // of transposed softmax weights do.
    const gradientOfB = () => {
      const [rows, a] = [rowsOf(g), rowsOf(input(0))];
      if (transposeB) return product(transpose(rows), a, specB, destination(1));
      return columnsOfB
        ? transpose(product(transpose(rows), a, specB))
        : product(transpose(a), rows, specB, destination(1));
    };
    return [needs[0] ? gradientOfA() : null, needs[1] ? gradientOfB() : null];
  },
  // Not as JSON, in which Infinity and NaN are the same.
  variant: ({ scale, transposeB }) => (transposeB ? `${scale}T` : `${scale}`),
  cost: (inputs, outputs) => ({
    flops: 2 * sizeOf(outputs[0]!.shape) * inputs[0]!.shape.at(-1)!,
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    boundBy: 'tensorCores',
  }),
  cuda: {
    kind: 'custom',
    strided: true,
    launch: launchMatmul,
  },
  cpu: {
    kind: 'onnx',
    strided: true,
    build: (graph, [a, b], { scale, transposeB = false }, { outputs }) => {
      const { transposed = false } = b!;
      return [buildMatmul(graph, a!, { ...b!, transposed: transposed !== transposeB }, scale, outputs[0]!)];
    },
  },
});

/** [..., n] as one matrix of all its rows. */
function joinRows(x: Tensor): Tensor {
  return isMatrix(x) ? x : reshape(x, [sizeOf(x.shape.slice(0, -1)), x.shape.at(-1)!]);
}

/** `x`, copied if `joinRows` and the product with a matrix would otherwise each copy it. */
function joinable(x: Tensor): Tensor {
  return isMatrix(x) || x.isContiguous ? x : contiguous(x);
}

/**
 * A product for the gradient of an input, in the precision of the operand that was multiplied; a float32 input that was
 * multiplied as a cast gets its sums unrounded.
 */
function gradientProduct(
  x: Tensor,
  y: Tensor,
  scale: number,
  input: TensorSpec,
  destination: Tensor | null,
): Tensor {
  const dtype = byteSize(x.dtype) < byteSize(y.dtype) ? x.dtype : y.dtype;
  const unrounded = input.dtype === 'float32' && dtype !== 'float32';
  const attributes: MatmulAttributes = unrounded ? { scale, dtype: 'float32' } : { scale };
  return applyOne(matmulOp, [cast(x, dtype), cast(y, dtype)], attributes, destination);
}

/** Options of `matmul`. */
export interface MatmulOptions {
  /** Multiplies the product. Default 1. */
  scale?: number;
  /** The result's dtype. Default the operands', or the one that autocast gives them. */
  dtype?: DType;
}

/**
 * The matrix product over the last two dimensions, batched and broadcast over the others as torch.matmul does: [..., m, k] ·
 * [..., k, n] -> [..., m, n], times `scale`. A transposed view is read without a copy. A one-dimensional operand is a row if
 * it comes first and a column if it comes second, and loses that dimension again, so two give a scalar. `dtype: 'float32'`
 * keeps the sums of low-precision operands as they are, unrounded. Operands are floating-point: no device multiplies matrices
 * of integers. Throws ShapeError and DTypeError.
 */
export function matmul(a: Tensor, b: Tensor, options?: MatmulOptions): Tensor {
  requireTensor('matmul', a);
  requireTensor('matmul', b);
  const attributes = attributesOf(options, b);
  if (a.rank === 0 || b.rank === 0) {
    throw new ShapeError(
      `matmul: ${formatShape(a.shape)} · ${formatShape(b.shape)}: operands need a dimension; use mul().`,
    );
  }
  if (a.rank > 1 && b.rank > 1) return applyOne(matmulOp, [a, b], attributes);
  return scope(() => {
    const rows = a.rank === 1 ? unsqueeze(a, 0) : a;
    const columns = b.rank === 1 ? unsqueeze(b, 1) : b;
    const result = applyOne(matmulOp, [rows, columns], attributes);
    const shape = result.shape.slice(0, -2);
    if (a.rank > 1) shape.push(result.shape.at(-2)!);
    if (b.rank > 1) shape.push(result.shape.at(-1)!);
    return reshape(result, shape);
  });
}

const unscaled: MatmulAttributes = { scale: 1 };
const unscaledByColumns: MatmulAttributes = { scale: 1, columnsOfB: true };
const byTransposed: MatmulAttributes = { scale: 1, transposeB: true };

function attributesOf(options: MatmulOptions | undefined, b: Tensor): MatmulAttributes {
  const columnsOfB = b.rank > 1 && b.strides.at(-2) === 1 && b.strides.at(-1) !== 1;
  if (options === undefined) return columnsOfB ? unscaledByColumns : unscaled;
  checkOptions('matmul', options, ['scale', 'dtype']);
  const { scale = 1, dtype } = options;
  checkElement('matmul', 'float64', scale);
  if (dtype === undefined) return { scale, columnsOfB };
  checkDType('matmul', dtype);
  return { scale, dtype, columnsOfB };
}

/** x · weightᵀ: [..., in] with a weight [out, in] gives [..., out]. Throws a ShapeError or DTypeError. */
export function linear(x: Tensor, weight: Tensor, ...rest: []): Tensor {
  requireTensor('linear', x);
  requireTensor('linear', weight);
  refuseMore('linear', rest);
  if (x.rank > 1 && isMatrix(weight)) return applyOne(matmulOp, [x, weight], byTransposed);
  return scope(() => matmul(x, transpose(weight)));
}
