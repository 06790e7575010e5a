import type { DType } from '@roofline/tensor-core';

/** What scores, sums and the log-sum-exp are calculated in: float64 for float64, else float32. */
export function accumulatorDType(dtype: DType): DType {
  return dtype === 'float64' ? 'float64' : 'float32';
}

/** The most negative float32: what stands in for a maximum of -∞, so that -∞ minus it is -∞ still. */
export const lowestFloat32 = -3.4028234663852886e38;
