import { buildMatmul, inOrder } from './matmul-graph.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { formatShape, sameShape, sizeOf } from '../../base/shape.ts';
import { type MatmulAttributes, matmulOp } from './matmul.ts';

/**
 * c + scale · a · b, as `matmul` and `add` give it, in c's shape and dtype, for compiled functions on GPUs. The sum is rounded
 * once, whereas `matmul` rounds the product first. a and b are float16 or bfloat16; c and the result are contiguous.
 */
export const addmmOp: ComputeOp<MatmulAttributes> = defineOp<MatmulAttributes>({
  name: 'addmm',
  autocast: 'none',
  infer: ([a, b, c], attributes) => {
    if (a!.dtype !== 'float16' && a!.dtype !== 'bfloat16') {
      throw new DTypeError(
        `addmm: operands must be float16 or bfloat16, not ${a!.dtype}; use add(matmul()).`,
      );
    }
    const [product] = matmulOp.infer([a!, b!], { ...attributes, dtype: c!.dtype });
    if (!sameShape(product!.shape, c!.shape)) {
      throw new ShapeError(
        `addmm: c ${formatShape(c!.shape)} must be of the product's shape ${formatShape(product!.shape)}.`,
      );
    }
    return [product!];
  },
  variant: (attributes) => matmulOp.variant!(attributes),
  cost: (inputs, outputs, attributes) => {
    const product = matmulOp.cost!(inputs.slice(0, 2), outputs, attributes);
    return {
      ...product,
      flops: product.flops + sizeOf(outputs[0]!.shape),
      bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    };
  },
  cuda: matmulOp.cuda,
  cpu: {
    kind: 'onnx',
    strided: true,
    build: (graph, [a, b, c], { scale, transposeB = false }, { outputs }) => {
      const { transposed = false } = b!;
      const second = { ...b!, transposed: transposed !== transposeB };
      return [graph.node('Add', [buildMatmul(graph, a!, second, scale, outputs[0]!), inOrder(graph, c!)])];
    },
  },
});

/** The same, written to c. */
export const addmmInPlaceOp: ComputeOp<MatmulAttributes> = { ...addmmOp, name: 'addmm_', mutates: [2] };
