import { type DType, autocastDType, isFloatingPoint } from '@roofline/tensor-core';

/** What scores, sums and the log-sum-exp are calculated in: float64 for float64, else float32. */
export function accumulatorDType(dtype: DType): DType {
  return dtype === 'float64' ? 'float64' : 'float32';
}

/** What autocast, where it runs, makes of an operand of attention: its own dtype, but for float64. */
export function autocastOperandDType(dtype: DType): DType {
  const low = autocastDType();
  return low === null || dtype === 'float64' || !isFloatingPoint(dtype) ? dtype : low;
}

/**
 * The most negative number that scores of operands of `dtype` can be: what replaces a maximum of -∞, so that -∞ minus
 * it is -∞ still.
 */
export function lowestScore(dtype: DType): number {
  return dtype === 'float64' ? -Number.MAX_VALUE : -3.4028234663852886e38;
}
