import { type MatmulAttributes, matmulOp } from '../../ops/matrix/matmul.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { byteSize } from '../../base/dtype.ts';
import { contiguousStrides, sizeOf } from '../../base/shape.ts';
import { isOp } from './is-op.ts';
import { leaveAsIs } from './operands.ts';
import type { Placed } from './rewrite.ts';

/** Whether a call is a matrix product of float16 or bfloat16 operands, with attributes that are the same in every run. */
export function isLowProduct({ op, inputs, outputs, live }: Call): boolean {
  return isOp(op, matmulOp) && live === null && byteSize(inputs[0]!.dtype) === 2 && outputs[0]!.size > 0;
}

export function isDenseMatrix({ shape, isContiguous }: Operand): boolean {
  return shape.length === 2 && isContiguous;
}

/** Whether two products, turned alike and with an operand in one storage, differ only in operands and results. */
export function isAlike(a: Call, b: Call): boolean {
  const [one, other] = [a.attributes as MatmulAttributes, b.attributes as MatmulAttributes];
  return one.scale === other.scale && a.outputs[0]!.dtype === b.outputs[0]!.dtype;
}

/** Whether dense matrices follow one another in one storage. */
export function liesStacked(matrices: readonly Operand[]): boolean {
  return matrices.every((matrix, i) => {
    const before = matrices[i - 1];
    return !before || (before.storage === matrix.storage && before.offset + before.size === matrix.offset);
  });
}

/** Whether products would read the same operands at `place`. */
export function mayMove({ calls }: Graph, products: readonly Placed[], place: number): boolean {
  return products.every(({ call, at }) => {
    const between = calls.slice(Math.min(at, place), Math.max(at, place));
    return leaveAsIs(between, call.inputs.slice(0, 2));
  });
}

/** A dense operand of another shape that begins where `like` does. */
export function dense(like: Operand, shape: readonly number[]): Operand {
  const size = sizeOf(shape);
  const strides = contiguousStrides(shape);
  return { ...like, shape, strides, size, byteLength: size * byteSize(like.dtype), isContiguous: true };
}
