import {
  RooflineError,
  ShapeError,
  type Tensor,
  checkOptions,
  crossEntropy,
  dependOn,
  describeValue,
  formatShape,
  linearCrossEntropy,
  range,
  requireTensors,
  reshape,
  scope,
} from '@roofline/tensor-core';
import { sameShape } from '@roofline/tensor-core/kernel-api';
import { type TransformerLM, requireModel } from '../model/transformer-lm.ts';

/** Options of `languageModelLoss`. */
export interface LanguageModelLossOptions {
  /**
   * `whole` makes the logits of all tokens, then the loss; `chunked` never has them all in memory, see tensor-core's
   * `linearCrossEntropy`: for large vocabularies and many tokens. Default `whole`.
   */
  readonly logits?: LogitsMode;
}

/** What `logits` of `languageModelLoss` may be. */
export const logitsModes = ['whole', 'chunked'] as const;
/** Whether a loss has the logits of all tokens at once, or of a chunk at a time. */
export type LogitsMode = (typeof logitsModes)[number];

/**
 * The mean cross entropy, in nats, of predicting `targets` [B, T] from `ids` [B, T], as a scalar. `targets[b, t]`
 * is the token that follows `ids[b, t]`. Throws a ShapeError unless both are of one shape.
 */
export function languageModelLoss(
  model: TransformerLM,
  ids: Tensor,
  targets: Tensor,
  options: LanguageModelLossOptions = {},
): Tensor {
  requireModel('languageModelLoss', model);
  requireTensors('languageModelLoss', [ids, targets]);
  checkOptions('languageModelLoss', options, ['logits']);
  const { logits = 'whole' } = options;
  if (!logitsModes.includes(logits)) {
    throw new RooflineError(
      'OPTION',
      `languageModelLoss: logits must be ${logitsModes.join(' or ')}, not ${describeValue(logits)}.`,
    );
  }
  if (!sameShape(ids.shape, targets.shape)) {
    throw new ShapeError(
      `languageModelLoss: ids ${formatShape(ids.shape)} and targets ${formatShape(targets.shape)} must be of one shape.`,
    );
  }
  const { vocabularySize, modelDimension } = model.config;
  return scope(() => {
    const rows = (x: Tensor, columns: number) => reshape(x, [targets.size, columns]);
    const flatTargets = reshape(targets, [targets.size]);
    const ownLoss = dependOn(() => model.headLoss);
    if (ownLoss !== null) {
      const features = model.features(ids);
      return range('loss', () => ownLoss(features, targets, logits));
    }
    if (logits === 'whole') {
      const all = model.forward(ids);
      return range('loss', () => crossEntropy(rows(all, vocabularySize), flatTargets));
    }
    const features = model.features(ids);
    // Read here in place of the head's own call.
    const weight = dependOn(() => model.lmHead.weight);
    return range('loss', () => linearCrossEntropy(rows(features, modelDimension), weight, flatTargets));
  });
}
