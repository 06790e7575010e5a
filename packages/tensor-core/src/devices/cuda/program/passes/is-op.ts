import type { ComputeOp } from '../../../../op/op.ts';

/** Whether a call's op, of whatever attributes, is this one. */
export function isOp<A>(op: ComputeOp<never>, other: ComputeOp<A>): boolean {
  return op === (other as ComputeOp<never>);
}
