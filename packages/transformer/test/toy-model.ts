import { type DeviceSpec, type Tensor, fromTypedArray } from '@roofline/tensor-core';
import { type ModelConfig, TransformerLM, type TransformerOptions } from '../src/index.ts';

export const toyConfig: ModelConfig = {
  vocabularySize: 11,
  contextLength: 8,
  modelDimension: 8,
  feedForwardDimension: 12,
  layers: 2,
  heads: 2,
};

export function toyModel(options: TransformerOptions = {}): TransformerLM {
  return new TransformerLM(toyConfig, { seed: 3, ...options });
}

/** [B, T] token ids from nested arrays. */
export function idsOf(rows: readonly (readonly number[])[], device: DeviceSpec = 'cpu'): Tensor {
  return fromTypedArray(Int32Array.from(rows.flat()), [rows.length, rows[0]!.length], { device });
}
