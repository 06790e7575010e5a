import { type DType, checkDType } from '../../base/dtype.ts';

const storage: Record<DType, string> = {
  float32: 'float',
  float16: 'float16',
  bfloat16: 'bfloat16',
  float64: 'double',
  int32: 'int32',
  int64: 'int64',
  bool: 'bool8',
};

/** The C++ type of a dtype in memory, as kernels/prelude.cuh names it. */
export function storageType(dtype: DType): string {
  return storage[dtype] ?? unknown('storageType', dtype);
}

/** The C++ type that a dtype is calculated in. */
export function computeType(dtype: DType): string {
  if (dtype === 'float16' || dtype === 'bfloat16') return 'float';
  return dtype === 'bool' ? 'bool' : (storage[dtype] ?? unknown('computeType', dtype));
}

function unknown(owner: string, dtype: DType): string {
  checkDType(owner, dtype);
  return dtype;
}
