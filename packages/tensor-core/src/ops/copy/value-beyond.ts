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

/** The range of each includes those of the ones before. */
const byRange: readonly (readonly DType[])[] = [
  ['float16', 'bfloat16', 'float32', 'float64'],
  ['bool', 'int32', 'int64'],
];

/**
 * The first value of `x` that a dtype of the same kind cannot hold even rounded: a finite number that would become infinite,
 * or a whole number that would become another. Null if there is none. Waits for the device, unless the dtype holds every value
 * that `x` can have.
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
