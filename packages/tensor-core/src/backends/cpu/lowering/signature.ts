import type { MemoryView } from '../../../base/memory-view.ts';
import type { TensorSpec } from '../../../base/memory-view.ts';
import type { ComputeOp } from '../../../op/op.ts';

const opNumbers = new WeakMap<object, number>();
let opCount = 0;

/** Everything that a session for an op on whole tensors depends on. */
export function callSignature<A>(
  op: ComputeOp<A>,
  attributes: A,
  inputs: readonly MemoryView[],
  outputs: readonly TensorSpec[],
): string {
  let signature = variantSignature(op, attributes);
  for (const input of inputs) signature += layoutSignature(input);
  for (const { dtype, shape } of outputs) signature += `>${dtype}${shape.join()}`;
  return signature;
}

/** The same for a session that runs piece by piece over `size` elements, however they are shaped. */
export function chunkedSignature<A>(
  op: ComputeOp<A>,
  attributes: A,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  size: number,
): string {
  let signature = `${variantSignature(op, attributes)}#${size}`;
  for (const { dtype } of inputs) signature += `|${dtype}`;
  for (const { dtype } of outputs) signature += `>${dtype}`;
  return signature;
}

/** The op, by identity because names may repeat, and after a separator the variant that its attributes select. */
function variantSignature<A>(op: ComputeOp<A>, attributes: A): string {
  let number = opNumbers.get(op);
  if (number === undefined) opNumbers.set(op, (number = opCount++));
  if (op.variant) return `${number}:${op.variant(attributes)}`;
  return attributes === undefined ? `${number}` : `${number}:${JSON.stringify(attributes)}`;
}

function layoutSignature({ dtype, shape, isContiguous, strides, offset, storage }: MemoryView): string {
  // A contiguous tensor is bound at its own offset; a view's offset is part of the graph.
  if (isContiguous) return `|${dtype}${shape.join()}`;
  return `|${dtype}${shape.join()}@${offset}:${strides.join()}/${storage.byteLength}`;
}
