import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ModelConfig, TransformerLM, readPretrainedConfig, savePretrained } from '../../src/index.ts';
import { readGenerationConfig } from '../../src/pretrained/generation-config.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';

const path = temporaryFolder();
const sizes = {
  ...{ vocab_size: 11, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 2 },
  ...{ num_attention_heads: 4, max_position_embeddings: 64 },
};

let files = 0;
function configOf(fields: object): ModelConfig {
  const file = path(`config-${files++}.json`);
  writeFileSync(file, JSON.stringify({ model_type: 'llama', ...sizes, ...fields }));
  return readPretrainedConfig(file).config;
}

describe('the heads of keys of a config', () => {
  it.each([
    ['llama', 16, 16],
    ['mistral', 16, 8],
    ['qwen2', 32, 32],
    ['qwen3', 64, 32],
  ])('of a %s of %i heads are %i where it does not say', (model_type, num_attention_heads, heads) => {
    const fields = { model_type, num_attention_heads, hidden_size: 128 };
    expect(configOf(fields).keyValueHeads).toBe(heads);
  });

  it.each(['llama', 'mistral', 'qwen2', 'qwen3'])(
    'of a %s are as many as of queries where it says null',
    (model_type) => {
      expect(configOf({ model_type, num_key_value_heads: null }).keyValueHeads).toBe(4);
    },
  );
});

describe('the stretched positions of a config', () => {
  const scalingOf = (rope_scaling: object) => configOf({ rope_scaling }).ropeScaling;

  it.each([
    // As `get_mscale` of transformers gives it: 0.1 · mscale · ln(factor) + 1, one by the other.
    [{ mscale: 2, mscale_all_dim: 0.5 }, (0.2 * Math.log(8) + 1) / (0.05 * Math.log(8) + 1)],
    [{ mscale: 0.707, mscale_all_dim: 0.707 }, 1],
    [{ mscale: 2, mscale_all_dim: 0.5, attention_factor: 3 }, 3],
    [{ mscale: 2 }, undefined],
    [{ mscale_all_dim: 2 }, undefined],
    [{ mscale: 2, mscale_all_dim: 0 }, undefined],
  ])('by yarn with %o have the attention factor %s', (fields, expected) => {
    const scaling = scalingOf({ rope_type: 'yarn', factor: 8, ...fields }) as { attentionFactor?: number };
    if (expected === undefined) expect(scaling).not.toHaveProperty('attentionFactor');
    else expect(scaling.attentionFactor).toBeCloseTo(expected, 14);
  });

  it('begin with the context of the model where they name none', () => {
    const llama3 = { rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 };
    expect(scalingOf(llama3)).toMatchObject({ originalContextLength: 64 });
    const named = { ...llama3, original_max_position_embeddings: 16 };
    expect(scalingOf(named)).toMatchObject({ originalContextLength: 16 });
  });
});

it('a top_k of 0 is all tokens, as in transformers', () => {
  mkdirSync(path('generation'));
  const file = join(path('generation'), 'generation_config.json');
  writeFileSync(file, JSON.stringify({ do_sample: true, top_k: 0 }));
  expect(readGenerationConfig(path('generation'))).toEqual({ temperature: 1, topP: 1 });
});

describe('savePretrained refuses', () => {
  const small = {
    ...{ vocabularySize: 11, contextLength: 8, modelDimension: 8, feedForwardDimension: 12 },
    ...{ layers: 1, heads: 2 },
  };
  const gpt2: Partial<ModelConfig> = {
    ...{ norm: 'layer', positions: 'learned', feedForward: 'gelu' },
    ...{ attentionBias: 'all', feedForwardBias: true },
  };

  it.each<[what: string, config: Partial<ModelConfig>]>([
    ['a GPT-2 of shared heads of keys', { ...gpt2, keyValueHeads: 1 }],
    ['a GPT-2 of heads that are not its width', { ...gpt2, headDimension: 2 }],
    ['a GPT-2 of windows', { ...gpt2, slidingWindow: 3 }],
    ['a GPT-2 without biases of attention', { ...gpt2, attentionBias: 'none' }],
    ['a GPT-2 without biases of its network', { ...gpt2, feedForwardBias: false }],
    ['a GPT-2 with norms of queries', { ...gpt2, queryKeyNorm: true }],
    ['a Qwen3 with biases of queries alone', { queryKeyNorm: true, attentionBias: 'query-key-value' }],
    ['a Qwen3 with biases of its network', { queryKeyNorm: true, feedForwardBias: true }],
    ['a Qwen2 with biases of its network', { attentionBias: 'query-key-value', feedForwardBias: true }],
    ['a Mistral with biases', { slidingWindow: 3, attentionBias: 'all' }],
    ['a Mistral with biases of its network', { slidingWindow: 3, feedForwardBias: true }],
  ])('%s, which transformers does not have', (_, config) => {
    const model = new TransformerLM({ ...small, ...config });
    expect(() => savePretrained(model, path('refused'))).toThrow(/transformers has no model with/);
  });
});
