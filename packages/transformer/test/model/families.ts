import type { ModelConfig } from '../../src/index.ts';

const sizes = {
  vocabularySize: 13,
  contextLength: 12,
  modelDimension: 8,
  feedForwardDimension: 12,
  layers: 2,
};

/** A small config of each family of models that people have. */
export const families: Readonly<Record<string, ModelConfig>> = {
  llama: {
    ...sizes,
    ...{ heads: 4, keyValueHeads: 2, headDimension: 6, normEpsilon: 1e-6, ropeTheta: 500 },
    ropeScaling: {
      type: 'llama3',
      ...{ factor: 4, originalContextLength: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4 },
    },
  },
  'llama with biases, linear': {
    ...sizes,
    ...{ heads: 2, attentionBias: 'all', feedForwardBias: true },
    ropeScaling: { type: 'linear', factor: 2 },
  },
  'mistral with a window': { ...sizes, heads: 4, keyValueHeads: 2, slidingWindow: 3 },
  'qwen2 with windows in some layers': {
    ...sizes,
    ...{ heads: 4, keyValueHeads: 1, layers: 3, attentionBias: 'query-key-value' },
    ...{ slidingWindow: 4, fullAttentionLayers: [0] },
  },
  'gpt2 that sees itself alone': {
    ...sizes,
    ...{ heads: 2, norm: 'layer', feedForward: 'gelu', positions: 'learned', slidingWindow: 1 },
  },
  qwen2: { ...sizes, heads: 4, keyValueHeads: 1, attentionBias: 'query-key-value', tieWordEmbeddings: true },
  qwen3: {
    ...sizes,
    ...{ heads: 4, keyValueHeads: 2, headDimension: 4, queryKeyNorm: true },
    ropeScaling: { type: 'yarn', factor: 4, originalContextLength: 4 },
  },
  gpt2: {
    ...sizes,
    ...{ heads: 2, attentionBias: 'all', feedForwardBias: true, norm: 'layer', feedForward: 'gelu-tanh' },
    ...{ positions: 'learned', tieWordEmbeddings: true },
  },
  'gpt2 of an odd head': {
    ...sizes,
    ...{ modelDimension: 9, heads: 3, norm: 'layer', feedForward: 'gelu', positions: 'learned' },
  },
};
