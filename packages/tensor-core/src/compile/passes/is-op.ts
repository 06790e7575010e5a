import { castOp } from '../../op/autocast/cast-op.ts';
import type { ComputeOp } from '../../op/op.ts';

/** Whether a call's op, of whatever attributes, is this one. */
export function isOp<A>(op: ComputeOp<never>, other: ComputeOp<A>): boolean {
  return op === (other as ComputeOp<never>);
}

/** Whether an op casts: as autocast does, or with the gradient that `cast` adds to that. */
export function isCast({ cuda }: ComputeOp<never>): boolean {
  return cuda === castOp.cuda;
}
