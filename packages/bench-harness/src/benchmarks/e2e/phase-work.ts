import { byteSize } from '@roofline/tensor-core';
import { costOf, countParameters, type ModelConfig } from '@roofline/transformer';
import type { PhaseWork } from '../../measuring/ceilings.ts';
import type { E2eDType, Mode } from './parameters.ts';
import type { PhaseName } from './result.ts';

const FLOAT32_BYTES = 4;
/** AdamW reads parameter, gradient and two moments, and writes all but the gradient. */
const ADAMW_BYTES = 7 * FLOAT32_BYTES;
/** Elementwise operations of one AdamW update; they never bound it, but count as work. */
const ADAMW_FLOPS = 12;

/**
 * FLOPs and the fewest bytes of each phase. Bytes count what no implementation avoids: the float32 parameters
 * read, the gradients written, and the logits, in the dtype of the arithmetic, written and read back; activations
 * may live in caches and do not count.
 */
export function phaseWork(
  config: ModelConfig,
  batch: number,
  mode: Mode,
  dtype: E2eDType,
): Partial<Record<PhaseName, PhaseWork>> {
  const { forwardFlops, backwardFlops } = costOf(config, { batch });
  const parameters = countParameters(config);
  const parameterBytes = parameters * FLOAT32_BYTES;
  const logitBytes = batch * config.contextLength * config.vocabularySize * byteSize(dtype);
  const forward = { flops: forwardFlops, bytes: parameterBytes + logitBytes };
  if (mode === 'forward') return { forward };
  const backward = { flops: backwardFlops, bytes: 2 * parameterBytes + logitBytes };
  if (mode === 'forward-backward') return { forward, backward };
  const optimizer = { flops: ADAMW_FLOPS * parameters, bytes: ADAMW_BYTES * parameters };
  return { forward, backward, optimizer };
}
