import type { Shape } from '@roofline/tensor-core';
import { sizeOf } from '@roofline/tensor-core';
import { type ModelConfig, ModelConfigError, checkConfig } from './model-config.ts';

/** Parameters by what they belong to. */
export interface ParameterCount {
  readonly tokenEmbeddings: number;
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
  const { vocabularySize, modelDimension: d, layers, tieWordEmbeddings } = config;
  yield ['token_embeddings.weight', [vocabularySize, d]];
  for (let layer = 0; layer < layers; layer++) yield* layerShapes(config, layer);
  yield ['ln_final.weight', [d]];
  if (!tieWordEmbeddings) yield ['lm_head.weight', [vocabularySize, d]];
}

function* layerShapes(config: ModelConfig, layer: number): Generator<readonly [name: string, shape: Shape]> {
  const { modelDimension: d, feedForwardDimension } = config;
  for (const projection of ['q', 'k', 'v', 'output'])
    yield [`layers.${layer}.attn.${projection}_proj.weight`, [d, d]];
  yield [`layers.${layer}.ffn.w1.weight`, [feedForwardDimension, d]];
  yield [`layers.${layer}.ffn.w2.weight`, [d, feedForwardDimension]];
  yield [`layers.${layer}.ffn.w3.weight`, [feedForwardDimension, d]];
  yield [`layers.${layer}.ln1.weight`, [d]];
  yield [`layers.${layer}.ln2.weight`, [d]];
}

/** How many parameters a model has in all. Throws a ModelConfigError for sizes that do not fit together. */
export function countParameters(config: ModelConfig): number {
  checkConfig('countParameters', config);
  return countParametersByModule(config).total;
}

/** How many parameters each part of a model has. Throws a ModelConfigError for sizes that do not fit together. */
export function countParametersByModule(config: ModelConfig): ParameterCount {
  checkConfig('countParametersByModule', config);
  const count = { tokenEmbeddings: 0, attention: 0, feedForward: 0, norms: 0, head: 0, total: 0 };
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

function partOf(name: string): Exclude<keyof ParameterCount, 'total'> {
  if (name.includes('.attn.')) return 'attention';
  if (name.includes('.ffn.')) return 'feedForward';
  if (name.startsWith('token_embeddings')) return 'tokenEmbeddings';
  return name.startsWith('lm_head') ? 'head' : 'norms';
}
