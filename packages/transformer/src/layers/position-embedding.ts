import {
  ShapeError,
  type Tensor,
  checkCount,
  describeValue,
  embedding,
  requireTensor,
  slice,
} from '@roofline/tensor-core';
import { Embedding, type EmbeddingOptions } from './embedding.ts';
import { Module } from '../module/module.ts';

/** Throws a ShapeError, which names `owner`, unless `length` positions from `start` on lie within the context. */
export function checkPositions(owner: string, start: number, length: number, contextLength: number): void {
  if (!Number.isInteger(start) || start < 0) {
    throw new ShapeError(
      `${owner}: the first position must be a whole number of zero or more, got ${describeValue(start)}.`,
    );
  }
  if (start + length > contextLength) {
    throw new ShapeError(
      `${owner}: a sequence of ${start + length} tokens is longer than the context of ${contextLength}; ` +
        'shorten it, or build the model with a larger contextLength.',
    );
  }
}

/**
 * A learned vector for each position, as GPT-2 has them: `length` rows of the weight [contextLength, d], from the
 * position `start` on, or at those of a tensor, int32 or int64 [T] or [B, T]. Throws a ShapeError for positions outside the context, of a
 * tensor as `embedding` does.
 */
export class PositionEmbedding extends Module<[length: number, start?: number | Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(contextLength: number, dimension: number, options: EmbeddingOptions = {}) {
    super();
    checkCount('PositionEmbedding', 'contextLength', contextLength, 1);
    this.weight = new Embedding(contextLength, dimension, options).weight;
  }

  /** Rows [length, d], or [B, length, d]. */
  protected override compute(length: number, start: number | Tensor = 0): Tensor {
    if (typeof start === 'object') {
      requireTensor('PositionEmbedding', start);
      return embedding(this.weight, start);
    }
    checkCount('PositionEmbedding', 'the length', length, 1);
    checkPositions('PositionEmbedding', start, length, this.weight.shape[0]!);
    return slice(this.weight, 0, start, start + length);
  }
}
