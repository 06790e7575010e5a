import { type Tensor, checkCount, checkGenerator, checkNumber, embedding } from '@roofline/tensor-core';
import { Module } from '../module/module.ts';
import {
  type ParameterOptions,
  checkParameterOptions,
  truncatedNormalParameter,
} from '../module/parameter.ts';

export interface EmbeddingOptions extends ParameterOptions {
  /** The standard deviation of new weights. Default 1. */
  readonly std?: number;
}

/** Rows of a table by id: int32 or int64 ids [...] -> [..., dimension]. Drawn with std 1. */
export class Embedding extends Module<[ids: Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(count: number, dimension: number, embeddingOptions: EmbeddingOptions) {
    super();
    checkCount('Embedding', 'the count', count, 1);
    checkCount('Embedding', 'the dimension', dimension, 1);
    checkParameterOptions('Embedding', embeddingOptions, ['std']);
    const { std = 1, ...options } = embeddingOptions;
    checkGenerator('Embedding', options.generator);
    checkNumber(
      'Embedding',
      'std',
      std,
      'a finite number of zero or more',
      (value) => value >= 0 && value < Infinity,
    );
    this.weight = truncatedNormalParameter([count, dimension], std, options);
  }

  protected override compute(ids: Tensor): Tensor {
    return embedding(this.weight, ids);
  }
}
