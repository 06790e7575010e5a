import type { Shape } from '@roofline/tensor-core';
import { sizeOf } from '@roofline/tensor-core';
import { type ModelConfig, ModelConfigError, checkConfig, wholeConfig } from './model-config.ts';

/** Parameters by what they belong to. */
export interface ParameterCount {
  readonly tokenEmbeddings: number;
  /** 0 where positions are rotary. */
  readonly positionEmbeddings: number;
  readonly attention: number;
  readonly feedForward: number;
  readonly norms: number;
  /** 0 where the head's weights are the embeddings'. */
  readonly head: number;
  readonly total: number;
}

/** The name and shape of every parameter of a model, each once, in its own order, without building it. */
export function parameterShapes(config: ModelConfig): Generator<readonly [name: string, shape: Shape]> {
  checkConfig('parameterShapes', config);
  return shapesOf(config);
}

function* shapesOf(config: ModelConfig): Generator<readonly [name: string, shape: Shape]> {
  const { vocabularySize, contextLength, modelDimension: d, layers, tieWordEmbeddings, ...rest } = config;
  yield ['token_embeddings.weight', [vocabularySize, d]];
  if (rest.positions === 'learned') yield ['position_embeddings.weight', [contextLength, d]];
  for (let layer = 0; layer < layers; layer++) yield* layerShapes(config, layer);
  yield* normShapes(config, 'ln_final');
  if (!tieWordEmbeddings) yield ['lm_head.weight', [vocabularySize, d]];
}

function* layerShapes(config: ModelConfig, layer: number): Generator<readonly [name: string, shape: Shape]> {
  const whole = wholeConfig(config);
  const { modelDimension: d, feedForwardDimension: ff, headDimension, attentionBias, queryKeyNorm } = whole;
  const prefix = `layers.${layer}`;
  const [queries, keys] = [whole.heads * headDimension, whole.keyValueHeads * headDimension];
  for (const [name, features] of Object.entries({ q: queries, k: keys, v: keys }))
    yield* linearShapes(`${prefix}.attn.${name}_proj`, [features, d], attentionBias !== 'none');
  yield* linearShapes(`${prefix}.attn.output_proj`, [d, queries], attentionBias === 'all');
  if (queryKeyNorm)
    for (const name of ['q_norm', 'k_norm']) yield [`${prefix}.attn.${name}.weight`, [headDimension]];
  yield* linearShapes(`${prefix}.ffn.w1`, [ff, d], whole.feedForwardBias);
  yield* linearShapes(`${prefix}.ffn.w2`, [d, ff], whole.feedForwardBias);
  if (whole.feedForward === 'swiglu') yield* linearShapes(`${prefix}.ffn.w3`, [ff, d], whole.feedForwardBias);
  for (const name of ['ln1', 'ln2']) yield* normShapes(config, `${prefix}.${name}`);
}

function* linearShapes(
  name: string,
  shape: readonly [outFeatures: number, inFeatures: number],
  bias: boolean,
): Generator<readonly [name: string, shape: Shape]> {
  yield [`${name}.weight`, shape];
  if (bias) yield [`${name}.bias`, [shape[0]]];
}

function* normShapes(
  { modelDimension, norm }: ModelConfig,
  name: string,
): Generator<readonly [name: string, shape: Shape]> {
  yield [`${name}.weight`, [modelDimension]];
  if (norm === 'layer') yield [`${name}.bias`, [modelDimension]];
}

/** How many parameters a model has in all. Throws a ModelConfigError for sizes that do not fit together. */
export function countParameters(config: ModelConfig): number {
  checkConfig('countParameters', config);
  return countParametersByModule(config).total;
}

/** How many parameters each part of a model has. Throws a ModelConfigError for sizes that do not fit together. */
export function countParametersByModule(config: ModelConfig): ParameterCount {
  checkConfig('countParametersByModule', config);
  const count = {
    tokenEmbeddings: 0,
    positionEmbeddings: 0,
    attention: 0,
    feedForward: 0,
    norms: 0,
    head: 0,
    total: 0,
  };
  const add = (name: string, shape: Shape, times: number) => {
    const size = times * sizeOf(shape);
    count[partOf(name)] += size;
    count.total += size;
  };
  for (const [name, shape] of shapesOf({ ...config, layers: 0 })) add(name, shape, 1);
  // All layers are alike, and there may be more of them than can be visited.
  for (const [name, shape] of layerShapes(config, 0)) add(name, shape, config.layers);
  if (Number.isSafeInteger(count.total)) return count;
  throw new ModelConfigError(
    `countParameters: a model of ${config.layers} layers of dimension ${config.modelDimension} has about ` +
      `${count.total.toPrecision(3)} parameters, more than can be counted; take smaller sizes.`,
  );
}

/** Parameters of one layer that are matrices of products; biases and norms are not. */
export function productParametersOfLayer(config: ModelConfig): number {
  return [...layerShapes(config, 0)].reduce(
    (sum, [, shape]) => sum + (shape.length === 2 ? sizeOf(shape) : 0),
    0,
  );
}

function partOf(name: string): Exclude<keyof ParameterCount, 'total'> {
  if (name.includes('.attn.')) return 'attention';
  if (name.includes('.ffn.')) return 'feedForward';
  if (name.startsWith('token_embeddings')) return 'tokenEmbeddings';
  if (name.startsWith('position_embeddings')) return 'positionEmbeddings';
  return name.startsWith('lm_head') ? 'head' : 'norms';
}
