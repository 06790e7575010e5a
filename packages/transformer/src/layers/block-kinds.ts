import { RooflineError, checkNumber, describeValue } from '@roofline/tensor-core';
import type { ParameterOptions } from '../module/parameter.ts';
import { GeluNetwork } from './gelu-network.ts';
import { LayerNorm } from './layer-norm.ts';
import { RMSNorm } from './rms-norm.ts';
import { SwiGLU } from './swiglu.ts';

export const feedForwards = ['swiglu', 'gelu', 'gelu-tanh'] as const;
/** w2(silu(w1 x) · w3 x), or w2(gelu(w1 x)) with GELU by the error function or by its approximation. */
export type FeedForward = (typeof feedForwards)[number];

export const norms = ['rms', 'layer'] as const;
/** RMSNorm, or LayerNorm, which has a bias. */
export type Norm = (typeof norms)[number];

/** Throws a RooflineError (code OPTION), which names `owner`, for a feed-forward network that is not known. */
export function checkFeedForward(owner: string, kind: FeedForward): void {
  if (!feedForwards.includes(kind)) throw notAmong(owner, 'feedForward', feedForwards, kind);
}

/** Throws a RooflineError (code OPTION), which names `owner`, for a norm that is not known. */
export function checkNorm(owner: string, kind: Norm): void {
  if (!norms.includes(kind)) throw notAmong(owner, 'norm', norms, kind);
}

/** Throws a RooflineError (code RANGE), which names `owner`, for what no norm adds. */
export function checkEpsilon(owner: string, what: string, value: number): void {
  checkNumber(owner, what, value, 'a finite number of zero or more', (x) => x >= 0 && x < Infinity);
}

function notAmong(owner: string, what: string, known: readonly string[], given: unknown): RooflineError {
  return new RooflineError(
    'OPTION',
    `${owner}: ${what} must be ${known.join(' or ')}, not ${describeValue(given)}.`,
  );
}

/** A feed-forward network by its name. */
export function feedForwardOf(
  kind: FeedForward,
  modelDimension: number,
  feedForwardDimension: number,
  options: ParameterOptions & { readonly bias?: boolean },
): SwiGLU | GeluNetwork {
  if (kind === 'swiglu') return new SwiGLU(modelDimension, feedForwardDimension, options);
  const approximate = kind === 'gelu-tanh' ? 'tanh' : 'none';
  return new GeluNetwork(modelDimension, feedForwardDimension, { ...options, approximate });
}

/** A norm by its name. */
export function normOf(
  kind: Norm,
  dimension: number,
  options: Omit<ParameterOptions, 'generator'>,
  epsilon: number,
): RMSNorm | LayerNorm {
  const Kind = kind === 'rms' ? RMSNorm : LayerNorm;
  return new Kind(dimension, options, epsilon);
}
