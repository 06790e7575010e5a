import type { ModelAttention } from '../attention/kinds.ts';
import type { Execution } from '../execution/kinds.ts';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import type { LogitsMode } from '@roofline/transformer';
import type { ModelShape } from '../model/shape.ts';
import type { Recomputation } from './kinds.ts';

/** A training step, whatever it is divided into. */
export interface StepSetting {
  readonly shape: ModelShape;
  /** Tokens of a sequence. */
  readonly context: number;
  /** Sequences for each device; on paper also parts of one. */
  readonly batch: number;
  readonly dtype: BenchmarkDType;
  readonly attention: ModelAttention;
  readonly execution: Execution;
  readonly recompute: Recomputation;
  /** Whether logits are made for all tokens, or for a chunk at a time with its loss. Default `whole`. */
  readonly logits?: LogitsMode;
}

export const FLOAT32_BYTES = 4;
export const elementBytes = (dtype: BenchmarkDType) => (dtype === 'float32' ? FLOAT32_BYTES : 2);

/** Parameters of a model by the units that are gathered together: embedding, each layer, and the head. */
export interface ParameterUnits {
  readonly embedding: number;
  readonly layer: number;
  readonly layers: number;
  readonly head: number;
  readonly total: number;
}

export function parameterUnits(shape: ModelShape): ParameterUnits {
  const { vocabularySize, modelDimension: d, feedForwardDimension, layers } = shape;
  const layer = 4 * d * d + 3 * d * feedForwardDimension + 2 * d;
  const embedding = vocabularySize * d;
  const head = embedding + d;
  return { embedding, layer, layers, head, total: embedding + layers * layer + head };
}
