import { wrongArgument } from '@roofline/cuda/host';
import type { TensorSpec } from '../base/memory-view.ts';
import { byteSize } from '../base/dtype.ts';
import type { ComputeOp, Cost } from './op.ts';
import { sizeOf } from '../base/shape.ts';

/** Bytes of all elements of `specs`. */
export function bytesOf(specs: readonly TensorSpec[]): number {
  return specs.reduce((bytes, { shape, dtype }) => bytes + sizeOf(shape) * byteSize(dtype), 0);
}

/** The work of one call of `op`: its own `cost`, or by default every input read and every output written once. */
export function costOf<A>(
  op: ComputeOp<A>,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  attributes: A,
): Cost {
  if (op?.kind !== 'compute') throw wrongArgument('costOf', 'the op', 'one that defineOp() gave', op);
  for (const specs of [inputs, outputs]) {
    if (!Array.isArray(specs)) throw wrongArgument('costOf', 'inputs and outputs', 'lists', specs);
  }
  return (
    op.cost?.(inputs, outputs, attributes) ?? { flops: 0, bytesMoved: bytesOf(inputs) + bytesOf(outputs) }
  );
}
