import type { TensorSpec } from '../../base/memory-view.ts';
import { isFloatingPoint } from '../../base/dtype.ts';
import { DTypeError } from '../../base/errors.ts';

/** Throws a DTypeError unless the operand `role` of `op` is of a floating-point dtype. */
export function requireFloatingPoint(op: string, role: string, { dtype }: TensorSpec): void {
  if (!isFloatingPoint(dtype)) {
    throw new DTypeError(`${op}: ${role} must be floating-point, not ${dtype}; cast() it first.`);
  }
}

/** Throws a DTypeError unless the operand `role` of `op` is int32 or int64. */
export function requireIndices(op: string, role: string, { dtype }: TensorSpec): void {
  if (dtype !== 'int32' && dtype !== 'int64') {
    throw new DTypeError(`${op}: ${role} must be int32 or int64, not ${dtype}.`);
  }
}
