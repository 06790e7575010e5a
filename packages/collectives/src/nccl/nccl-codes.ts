import type { DType } from '@roofline/tensor-core';
import type { Reduction } from '../group/backend.ts';

// The numbers of nccl.h.

/** ncclResult_t, as far as callers tell results apart. */
export const ncclSuccess = 0;
export const ncclInProgress = 7;

/** ncclDataType_t. A bool is no number to reduce, and has none. */
export const dataTypes: Readonly<Partial<Record<DType, number>>> = {
  int32: 2,
  int64: 4,
  float16: 6,
  float32: 7,
  float64: 8,
  bfloat16: 9,
};

/** ncclRedOp_t. */
export const reductionOps: Readonly<Record<Reduction, number>> = {
  sum: 0,
  product: 1,
  max: 2,
  min: 3,
  average: 4,
};
