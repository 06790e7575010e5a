import {
  ShapeError,
  type Tensor,
  crossEntropy,
  formatShape,
  range,
  requireTensors,
  reshape,
  scope,
} from '@roofline/tensor-core';
import { sameShape } from '@roofline/tensor-core/kernel-api';
import { type TransformerLM, requireModel } from '../model/transformer-lm.ts';

/**
 * The mean cross entropy, in nats, of predicting `targets` [B, T] from `ids` [B, T], as a scalar. `targets[b, t]`
 * is the token that follows `ids[b, t]`. Throws a ShapeError unless both are of one shape.
 */
export function languageModelLoss(model: TransformerLM, ids: Tensor, targets: Tensor): Tensor {
  requireModel('languageModelLoss', model);
  requireTensors('languageModelLoss', [ids, targets]);
  if (!sameShape(ids.shape, targets.shape)) {
    throw new ShapeError(
      `languageModelLoss: ids ${formatShape(ids.shape)} and targets ${formatShape(targets.shape)} must be of one shape.`,
    );
  }
  return scope(() => {
    const logits = model.forward(ids);
    return range('loss', () =>
      crossEntropy(
        reshape(logits, [targets.size, model.config.vocabularySize]),
        reshape(targets, [targets.size]),
      ),
    );
  });
}
