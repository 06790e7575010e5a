import { castOp } from '../../op/autocast/cast-op.ts';
import type { ComputeOp } from '../../op/op.ts';

/** Whether two ops are the same, whatever the types of their attributes. */
export function isOp<A>(op: ComputeOp<never>, other: ComputeOp<A>): boolean {
  return op === (other as ComputeOp<never>);
}

/** Whether an op casts: autocast's op, or `cast`'s, which has a gradient. */
export function isCast({ cuda }: ComputeOp<never>): boolean {
  return cuda === castOp.cuda;
}
