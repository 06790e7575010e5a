import type { DType } from '@roofline/tensor-core';

/** What scores, sums and the log-sum-exp are calculated in: float64 for float64, else float32. */
export function accumulatorDType(dtype: DType): DType {
  return dtype === 'float64' ? 'float64' : 'float32';
}
