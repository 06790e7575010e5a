import { alias } from '../../op/alias.ts';
import { applyOne } from '../../op/apply.ts';
import { type CastAttributes, castOp } from '../../op/autocast/cast-op.ts';
import { type DType, checkDType, isFloatingPoint } from '../../base/dtype.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import type { Tensor } from '../../tensor/tensor.ts';

const differentiableCast: ComputeOp<CastAttributes> = defineOp<CastAttributes>({
  ...castOp,
  gradient: ({ gradients, inputSpecs }) => [cast(gradients[0]!, inputSpecs[0]!.dtype)],
});

/**
 * The same values as another dtype; floating-point values become integers by truncation. Integers and bools have no gradients,
 * so such a result requires none. Throws a DTypeError for a dtype that does not exist.
 */
export function cast(x: Tensor, dtype: DType, ...rest: []): Tensor {
  requireTensor('cast', x);
  refuseMore('cast', rest);
  if (x.dtype === dtype) return alias(x);
  checkDType('cast', dtype);
  return applyOne(isFloatingPoint(dtype) ? differentiableCast : castOp, [x], { dtype });
}
