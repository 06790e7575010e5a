import type { Shape } from '@roofline/tensor-core';
import { sizeOf } from '@roofline/tensor-core';
import { type ModelConfig, checkConfig } from './model-config.ts';

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
  const { vocabularySize, modelDimension: d, feedForwardDimension, layers, tieWordEmbeddings } = config;
  yield ['token_embeddings.weight', [vocabularySize, d]];
  for (let layer = 0; layer < layers; layer++) {
    for (const projection of ['q', 'k', 'v', 'output'])
      yield [`layers.${layer}.attn.${projection}_proj.weight`, [d, d]];
    yield [`layers.${layer}.ffn.w1.weight`, [feedForwardDimension, d]];
    yield [`layers.${layer}.ffn.w2.weight`, [d, feedForwardDimension]];
    yield [`layers.${layer}.ffn.w3.weight`, [feedForwardDimension, d]];
    yield [`layers.${layer}.ln1.weight`, [d]];
    yield [`layers.${layer}.ln2.weight`, [d]];
  }
  yield ['ln_final.weight', [d]];
  if (!tieWordEmbeddings) yield ['lm_head.weight', [vocabularySize, d]];
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
  for (const [name, shape] of shapesOf(config)) {
    const size = sizeOf(shape);
    count[partOf(name)] += size;
    count.total += size;
  }
  return count;
}

function partOf(name: string): Exclude<keyof ParameterCount, 'total'> {
  if (name.includes('.attn.')) return 'attention';
  if (name.includes('.ffn.')) return 'feedForward';
  if (name.startsWith('token_embeddings')) return 'tokenEmbeddings';
  return name.startsWith('lm_head') ? 'head' : 'norms';
}
