import { alias } from '../../op/alias.ts';
import { applyOne } from '../../op/apply.ts';
import { type CastAttributes, castOp } from '../../autocast/cast-op.ts';
import type { DType } from '../../tensor/dtype.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import type { Tensor } from '../../tensor/tensor.ts';

const differentiableCast: ComputeOp<CastAttributes> = defineOp<CastAttributes>({
  ...castOp,
  gradient: ({ gradients, inputSpecs }) => [cast(gradients[0]!, inputSpecs[0]!.dtype)],
});

/** The same values as another dtype; floating-point values become integers by truncation. */
export function cast(x: Tensor, dtype: DType): Tensor {
  return x.dtype === dtype ? alias(x) : applyOne(differentiableCast, [x], { dtype });
}
