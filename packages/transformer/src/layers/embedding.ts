import { type Tensor, checkCount, checkNumber, embedding } from '@roofline/tensor-core';
import { Module } from '../module/module.ts';
import {
  type ParameterOptions,
  checkParameterOptions,
  seededGenerator,
  truncatedNormalParameter,
} from '../module/parameter.ts';

export interface EmbeddingOptions extends ParameterOptions {
  /** The standard deviation of new weights. Default 1. */
  readonly std?: number;
  /** The seed of new weights, in place of a generator. */
  readonly seed?: number;
}

/** Rows of a table by id: int32 or int64 ids [...] -> [..., dimension]. Drawn with std 1. */
export class Embedding extends Module<[ids: Tensor], Tensor> {
  readonly weight: Tensor;

  /** Throws a RooflineError (code OPTION) for a seed next to a generator. */
  constructor(count: number, dimension: number, embeddingOptions: EmbeddingOptions = {}) {
    super();
    checkCount('Embedding', 'the count', count, 1);
    checkCount('Embedding', 'the dimension', dimension, 1);
    checkParameterOptions('Embedding', embeddingOptions, ['std', 'seed']);
    const { std = 1, seed, ...options } = embeddingOptions;
    checkNumber(
      'Embedding',
      'std',
      std,
      'a finite number of zero or more',
      (value) => value >= 0 && value < Infinity,
    );
    const drawn = { ...options, generator: seededGenerator('Embedding', seed, options.generator) };
    this.weight = truncatedNormalParameter([count, dimension], std, drawn);
  }

  protected override compute(ids: Tensor): Tensor {
    return embedding(this.weight, ids);
  }
}
