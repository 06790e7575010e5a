import type { CudaContext, DType } from '@roofline/tensor-core';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';
import type { FlashRows, FlashTensors } from './flash-params.ts';

/** A call of attention, forward or backward, as each family of kernels launches it. */
export interface FlashCall {
  readonly context: CudaContext;
  readonly dtype: DType;
  readonly sizes: AttentionSizes;
  readonly settings: AttentionSettings;
  readonly tensors: FlashTensors;
  readonly rows: FlashRows;
}
