import { type Tensor, embedding } from '@roofline/tensor-core';
import { Module } from './module.ts';
import { type ParameterOptions, truncatedNormalParameter } from './parameter.ts';

export interface EmbeddingOptions extends ParameterOptions {
  /** The standard deviation of new weights. Default 1. */
  readonly std?: number;
}

/** Rows of a table by id: int32 or int64 ids [...] -> [..., dimension]. Drawn with std 1. */
export class Embedding extends Module<[ids: Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(count: number, dimension: number, { std = 1, ...options }: EmbeddingOptions) {
    super();
    this.weight = truncatedNormalParameter([count, dimension], std, options);
  }

  protected override compute(ids: Tensor): Tensor {
    return embedding(this.weight, ids);
  }
}
