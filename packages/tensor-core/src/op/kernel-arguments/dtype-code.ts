import type { DType } from '../../base/dtype.ts';

const codes: Record<DType, number> = {
  float32: 0,
  float16: 1,
  bfloat16: 2,
  float64: 3,
  int32: 4,
  int64: 5,
  bool: 6,
};

/** A number below 8 for each dtype, for kernels' numeric cache keys. */
export function codeOf(dtype: DType): number {
  return codes[dtype];
}
