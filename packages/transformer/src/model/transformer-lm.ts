import {
  type DType,
  type Device,
  type DeviceSpec,
  Generator,
  RooflineError,
  ShapeError,
  type Tensor,
  add,
  checkCount,
  checkDType,
  checkDevice,
  checkFunction,
  checkOptions,
  describeValue,
  device,
  formatShape,
  isGradEnabled,
  requireTensor,
  scope,
} from '@roofline/tensor-core';
import type { AttentionFunction } from '../layers/attention-function.ts';
import { TransformerBlock } from '../layers/block.ts';
import { normOf } from '../layers/block-kinds.ts';
import { Embedding } from '../layers/embedding.ts';
import { checkPaddedBatch, positionsFrom } from '../generation/padding.ts';
import { CacheStep } from '../generation/cache-step.ts';
import { KeyValueCache } from '../generation/key-value-cache.ts';
import { Linear, linearStd } from '../layers/linear.ts';
import {
  type ModelConfig,
  type WholeConfig,
  checkConfig,
  windowOfLayer,
  wholeConfig,
} from './model-config.ts';
import { building } from '../module/building.ts';
import { type RecomputePolicy, checkRecompute, runBlocks } from './recompute.ts';
import { Module } from '../module/module.ts';
import type { LayerNorm } from '../layers/layer-norm.ts';
import { PositionEmbedding } from '../layers/position-embedding.ts';
import type { RMSNorm } from '../layers/rms-norm.ts';
import { RotaryEmbedding } from '../layers/rope.ts';

/** Options of `TransformerLM`. */
export interface TransformerOptions {
  /** Default cpu. */
  readonly device?: DeviceSpec | Device;
  /** The dtype of parameters and activations. Default float32. */
  readonly dtype?: DType;
  /** The same seed gives the same weights on every device. Default 0. */
  readonly seed?: number;
  /** Default `plainAttention`. */
  readonly attention?: AttentionFunction;
  /** What the backward pass makes again, in place of keeping it. Default `none`. */
  readonly recompute?: RecomputePolicy;
}

/**
 * The mean cross entropy of a head of one's own, of what `features` gave and targets [B, T]: a scalar. `chunked` asks that the logits
 * of all tokens be never there at once.
 */
export type HeadLoss = (features: Tensor, targets: Tensor, logits: 'whole' | 'chunked') => Tensor;

/**
 * A decoder-only language model: embeddings, pre-norm blocks, a last norm and a head, whose weights are its own or
 * the embeddings'. Ids, int32 or int64 [B, T], to logits [B, T, vocabulary]. With a cache, ids are the tokens
 * after those that it holds; run it in noGrad. Parameters are named as in Stanford's cs336_basics.
 * Throws a ModelConfigError for sizes that do not fit together, and a RooflineError (code OPTION) for options that
 * do not exist.
 *
 * @example
 * ```ts
 * import { TransformerLM, generate, presetConfig } from '@roofline/transformer';
 *
 * const model = new TransformerLM(presetConfig('tiny', { contextLength: 16 }), { seed: 0 });
 * console.log(generate(model, [1, 2, 3], { maxNewTokens: 5 }));
 * ```
 */
export class TransformerLM extends Module<[ids: Tensor, cache?: KeyValueCache | CacheStep], Tensor> {
  readonly config: ModelConfig;
  readonly tokenEmbeddings: Embedding;
  /** Of a model with learned positions; null of one with rotary ones. */
  readonly positionEmbeddings: PositionEmbedding | null;
  readonly layers: readonly TransformerBlock[];
  readonly lnFinal: RMSNorm | LayerNorm;
  readonly lmHead: Linear;
  /** What `languageModelLoss` calls in place of the head and `crossEntropy`; null, as initially, for these. */
  headLoss: HeadLoss | null = null;
  readonly #positions: RotaryEmbedding | null;
  readonly #recompute: RecomputePolicy;

  constructor(config: ModelConfig, transformerOptions: TransformerOptions = {}) {
    super();
    checkConfig('TransformerLM', config);
    checkOptions('TransformerLM', transformerOptions, [
      ...(['device', 'dtype', 'seed', 'attention', 'recompute'] as const),
    ]);
    const {
      device: spec = 'cpu',
      dtype = 'float32',
      seed = 0,
      attention,
      recompute = 'none',
    } = transformerOptions;
    checkDevice('TransformerLM', spec);
    checkDType('TransformerLM', dtype);
    checkCount('TransformerLM', 'the seed', seed);
    if (attention !== undefined) checkFunction('TransformerLM', 'attention', attention);
    checkRecompute('TransformerLM', recompute);
    this.config = { ...config };
    this.#recompute = recompute;
    const parts = building(() => partsOf(config, { device: device(spec), dtype, seed, attention }));
    this.tokenEmbeddings = parts.tokenEmbeddings;
    this.positionEmbeddings = parts.positionEmbeddings;
    this.layers = parts.layers;
    this.lnFinal = parts.lnFinal;
    this.lmHead = parts.lmHead;
    this.#positions = parts.positions;
  }

  protected override compute(ids: Tensor, cache?: KeyValueCache | CacheStep): Tensor {
    return this.lmHead.forward(this.#featuresOf(ids, cache));
  }

  /** What the head makes logits of: the last norm's output [B, T, d] of ids [B, T], or what `headLoss` takes instead. */
  features(ids: Tensor): Tensor {
    return this.within(() => this.#featuresOf(ids));
  }

  #featuresOf(ids: Tensor, cache?: KeyValueCache | CacheStep): Tensor {
    checkInputs(ids, cache);
    const embedded = this.#embedded(ids, cache);
    const blocks = this.layers.map((layer, i) => (x: Tensor) => layer.forward(x, cache?.layer(i)));
    const policy = cache === undefined && isGradEnabled() ? this.#recompute : 'none';
    const x = runBlocks(blocks, embedded, policy);
    if (cache instanceof KeyValueCache) cache.advance(ids.shape[1]!);
    return this.lnFinal.forward(x);
  }

  // Rotary positions need not be shifted: attention depends on how far they lie apart.
  #embedded(ids: Tensor, cache?: KeyValueCache | CacheStep): Tensor {
    const tokens = this.tokenEmbeddings.forward(ids);
    const { positionEmbeddings } = this;
    if (positionEmbeddings === null) return tokens;
    const position = cache?.layer(0).position ?? 0;
    const length = ids.shape[1]!;
    return scope(() => {
      const starts = cache?.startsOn(tokens.device) ?? null;
      if (starts !== null) checkPaddedBatch(starts.shape[0]!, ids.shape[0]!);
      const positions = starts === null ? position : positionsFrom(starts, position, length);
      return add(tokens, positionEmbeddings.forward(length, positions));
    });
  }

  override dispose(): void {
    super.dispose();
    this.#positions?.dispose();
  }
}

function checkInputs(ids: Tensor, cache: KeyValueCache | CacheStep | undefined): void {
  requireTensor('TransformerLM', ids);
  if (cache !== undefined && !(cache instanceof KeyValueCache) && !(cache instanceof CacheStep)) {
    throw new RooflineError(
      'ARGUMENT',
      `TransformerLM: the cache must be a KeyValueCache or a CacheStep, not ${describeValue(cache)}.`,
    );
  }
  if (ids.rank !== 2) {
    throw new ShapeError(`TransformerLM: ids must be [batch, tokens], got ${formatShape(ids.shape)}.`);
  }
  if (cache instanceof CacheStep && ids.shape[1] !== 1) {
    throw new ShapeError(`CacheStep: takes one token a sequence, not ${ids.shape[1]}.`);
  }
}

interface PartsOptions {
  readonly device: Device;
  readonly dtype: DType;
  readonly seed: number;
  readonly attention?: AttentionFunction;
}

function partsOf(config: ModelConfig, { device, dtype, seed, attention }: PartsOptions) {
  const whole = wholeConfig(config);
  const { vocabularySize, contextLength, modelDimension, headDimension, normEpsilon } = whole;
  const options = { device, dtype, generator: new Generator(seed) };
  const { ropeTheta: theta, ropeScaling: scaling, tieWordEmbeddings: tied } = whole;
  const isRotary = whole.positions === 'rotary';
  const positions = isRotary
    ? new RotaryEmbedding({ headDimension, contextLength, theta, scaling, device })
    : null;
  // Tied weights start as small as a head's: logits of a matrix of std 1 would begin far from a guess.
  const std = tied ? linearStd(modelDimension, vocabularySize) : undefined;
  const tokenEmbeddings = new Embedding(vocabularySize, modelDimension, { ...options, std });
  const positionEmbeddings = isRotary
    ? null
    : new PositionEmbedding(contextLength, modelDimension, { ...options, std });
  const block = { ...options, ...blockSizes(whole), positions, attention };
  const layers = Array.from(
    { length: config.layers },
    (_, layer) => new TransformerBlock({ ...block, window: windowOfLayer(config, layer) }),
  );
  const lnFinal = normOf(whole.norm, modelDimension, { device, dtype }, normEpsilon);
  const weight = tied ? tokenEmbeddings.weight : undefined;
  const lmHead = new Linear(modelDimension, vocabularySize, { ...options, weight });
  return { tokenEmbeddings, positionEmbeddings, layers, lnFinal, lmHead, positions };
}

function blockSizes({ attentionBias: bias, queryKeyNorm, normEpsilon, ...whole }: WholeConfig) {
  const { modelDimension, feedForwardDimension, heads, keyValueHeads, headDimension } = whole;
  const { feedForward, feedForwardBias, norm } = whole;
  return {
    ...{ modelDimension, feedForwardDimension, heads, keyValueHeads, headDimension, bias },
    ...{ queryKeyNormEpsilon: queryKeyNorm ? normEpsilon : null },
    ...{ feedForward, feedForwardBias, norm, normEpsilon },
  };
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, unless `model` is a language model. */
export function requireModel(owner: string, model: TransformerLM): void {
  if (model instanceof TransformerLM) return;
  throw new RooflineError('ARGUMENT', `${owner}: takes a TransformerLM, not ${describeValue(model)}.`);
}
