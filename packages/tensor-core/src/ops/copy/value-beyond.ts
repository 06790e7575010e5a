import { noGrad } from '../../tensor/tape/grad-mode.ts';
import { type DType, isFloatingPoint } from '../../base/dtype.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { abs } from '../elementwise/abs.ts';
import { equal, less } from '../elementwise/comparisons.ts';
import { notEqual } from '../elementwise/logical-not.ts';
import { minimum } from '../elementwise/arithmetic.ts';
import { any } from '../reduce/any-all.ts';
import { cast } from './cast.ts';

/** Each holds the range of those before it. */
const byRange: readonly (readonly DType[])[] = [
  ['float16', 'bfloat16', 'float32', 'float64'],
  ['bool', 'int32', 'int64'],
];

/**
 * The first value of `x` that a dtype of its kind cannot hold, though it be rounded: a finite number that would become
 * infinite, or a whole number that would become another. Null where there is none, for which it waits for the device unless
 * the dtype holds all that `x` may be.
 */
export function valueBeyond(x: Tensor, dtype: DType): number | null {
  const ranges = byRange.find((dtypes) => dtypes.includes(x.dtype))!;
  if (ranges.indexOf(dtype) >= ranges.indexOf(x.dtype)) return null;
  return noGrad(() =>
    scope(() => {
      const lost = isFloatingPoint(x.dtype)
        ? becomesInfinite(x, dtype)
        : notEqual(cast(cast(x, dtype), x.dtype), x);
      if (any(lost).item() === 0) return null;
      return x.toFlatArray()[lost.toFlatArray().indexOf(1)]!;
    }),
  );
}

function becomesInfinite(x: Tensor, dtype: DType): Tensor {
  return minimum(equal(abs(cast(x, dtype)), Infinity), less(abs(x), Infinity));
}
