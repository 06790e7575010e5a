import { byteSize } from '@roofline/tensor-core';
import type { AttentionCell } from './parameters.ts';

/** Statistics are float32 whatever the dtype. */
const STATISTIC_BYTES = 4;

/**
 * Bytes that a cell needs, as they follow from its shape. With T = batch · sequence · d numbers in a tensor and S = batch · sequence² in the scores, all of the dtype:
 * plain attention keeps S weights, and in its backward pass holds those, their gradients and those of the scores, and
 * one gradient more than it had tensors: 6 T + 3 S. At its end it holds the weights, the gradients of the scores and all
 * three gradients, 8 T + 2 S, which is more where the sequence is shorter than 2 d. Flash keeps of each row the
 * log-sum-exp, in float32 also the largest score and the sum; its backward pass adds the three gradients: 8 T and the
 * statistics. Tiled attention keeps the largest score and the sum.
 */
export function memoryNeed({ attention, batch, sequence, headDimension, dtype }: AttentionCell) {
  const tensor = batch * sequence * headDimension * byteSize(dtype);
  const scores = batch * sequence ** 2 * byteSize(dtype);
  const statistic = batch * sequence * STATISTIC_BYTES;
  const kept = {
    plain: scores,
    flash: (dtype === 'float32' ? 3 : 1) * statistic,
    tiled: 2 * statistic,
  }[attention];
  const plainPeak = Math.max(6 * tensor + 3 * scores, 8 * tensor + 2 * scores);
  const peak = { plain: plainPeak, flash: 8 * tensor + kept, tiled: null }[attention];
  return {
    /** Of q, k, v, the output and its gradient. */
    tensorBytes: 5 * tensor,
    /** What the forward pass also keeps for the backward pass: weights, or statistics of their rows. */
    keptBytes: kept,
    /** Both: what is in use before the backward pass. */
    beforeBackwardBytes: 5 * tensor + kept,
    /** The most at once, in the backward pass; null for tiles, whose size decides. */
    peakBytes: peak,
  };
}
