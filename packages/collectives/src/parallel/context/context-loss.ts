import {
  cast,
  crossEntropy,
  dependOn,
  div,
  equal,
  linearCrossEntropy,
  mul,
  notEqual,
  reshape,
  sum,
  where,
} from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allReduce } from '../../ops/all-reduce.ts';
import type { DividableModel } from '../tensor/dividable-model.ts';
import { wideDType } from './attention-parts.ts';

/** Targets that do not count, as of `crossEntropy`. */
const ignoreIndex = -100;

/**
 * The head and the loss of this rank's tokens, times its share of all that count: the mean over the ranks, as data parallelism takes it of
 * gradients, is the mean over all tokens, however they are divided.
 */
export function contextLoss(
  { lmHead, config }: DividableModel,
  group: ProcessGroup,
): NonNullable<DividableModel['headLoss']> {
  return (features, targets, logits) => {
    const flat = reshape(targets, [targets.size]);
    const count = sum(cast(notEqual(flat, ignoreIndex), wideDType(features.dtype)));
    const usual = allReduce(count, group, { op: 'average' });
    // The mean of none would be NaN, and so its gradient: of a rank that has none to count any will do.
    const counted = where(equal(count, 0), 0, flat);
    const own = () => {
      if (logits === 'whole')
        return crossEntropy(
          reshape(lmHead.forward(features), [targets.size, config.vocabularySize]),
          counted,
        );
      const rows = reshape(features, [targets.size, features.shape[2]!]);
      // Read here in place of the head's own call.
      const weight = dependOn(() => lmHead.weight);
      return linearCrossEntropy(rows, weight, counted);
    };
    return mul(own(), div(count, usual));
  };
}
