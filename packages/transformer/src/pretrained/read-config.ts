import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { checkCount, checkOptions, checkText } from '@roofline/tensor-core';
import { type ModelConfig, ModelConfigError, checkConfig } from '../model/model-config.ts';
import { ConfigFields, PretrainedConfigError } from './config-fields.ts';
import { type ModelType, modelTypes } from './model-types.ts';
import { ropeOfConfig } from './rope-fields.ts';
import { windowOfConfig } from './window-fields.ts';

/** A config.json of `transformers` as ours. */
export interface PretrainedConfig {
  readonly modelType: ModelType;
  readonly config: ModelConfig;
  /** Fields, with their values, that make no difference here: dropout, which models here do not have, and what is not known. */
  readonly ignored: readonly string[];
}

/** Options of `readPretrainedConfig`. */
export interface PretrainedConfigOptions {
  /** The longest sequence, at most that of the config. Default that of the config. */
  readonly contextLength?: number;
}

/** Fields that say nothing of what a model calculates. */
const unheeded = new Set([
  ...['architectures', 'transformers_version', '_name_or_path', 'torch_dtype', 'dtype', 'use_cache'],
  ...['bos_token_id', 'eos_token_id', 'pad_token_id', 'initializer_range', 'pretraining_tp', 'n_ctx'],
  ...['summary_activation', 'summary_first_dropout', 'summary_proj_to_labels', 'summary_type'],
  ...['summary_use_proj', 'task_specific_params', 'reorder_and_upcast_attn'],
]);

/**
 * Reads config.json, or the one of a folder, as `transformers` writes it: of Llama, Mistral, Qwen2, Qwen3 and GPT-2. Throws a
 * PretrainedConfigError that names the field and its value for what models here do not have, and for a file that is no such config.
 *
 * @example
 * ```ts
 * import { countParameters, readPretrainedConfig } from '@roofline/transformer';
 *
 * const parametersOf = (folder: string) => countParameters(readPretrainedConfig(folder).config);
 * ```
 */
export function readPretrainedConfig(path: string, options: PretrainedConfigOptions = {}): PretrainedConfig {
  checkText('readPretrainedConfig', 'the path', path);
  checkOptions('readPretrainedConfig', options, ['contextLength']);
  if (options.contextLength !== undefined)
    checkCount('readPretrainedConfig', 'contextLength', options.contextLength, 1);
  const file = configFileOf(path);
  return pretrainedConfig(file, readObject(file), options.contextLength);
}

function configFileOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'config.json') : path;
}

/** The object of a JSON file. Throws a PretrainedConfigError that names the file. */
export function readObject(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new PretrainedConfigError(`${file} cannot be read: ${(cause as Error).message}.`);
  }
  try {
    const parsed = JSON.parse(text) as unknown;
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch (cause) {
    throw new PretrainedConfigError(`${file} is no JSON: ${(cause as Error).message}.`);
  }
  throw new PretrainedConfigError(`${file} must hold a JSON object.`);
}

function pretrainedConfig(
  file: string,
  fields: Record<string, unknown>,
  contextLength: number | undefined,
): PretrainedConfig {
  const given = new ConfigFields(file, fields);
  const modelType = given.text('model_type') as ModelType;
  if (!modelTypes.includes(modelType))
    throw given.refusal('model_type', `is not supported: ${modelTypes.join(', ')} are`);
  given.mustBe('quantization_config', [], 'fetch the weights that were not quantized');
  const whole = modelType === 'gpt2' ? gpt2Config(given) : llamaConfig(given, modelType);
  const config = { ...whole, contextLength: contextLength ?? whole.contextLength };
  if (config.contextLength > whole.contextLength) {
    throw new PretrainedConfigError(
      `${file}: a context of ${config.contextLength} is longer than that of the model, ${whole.contextLength}.`,
    );
  }
  try {
    checkConfig(file, config);
  } catch (cause) {
    if (cause instanceof ModelConfigError) throw new PretrainedConfigError(cause.message);
    throw cause;
  }
  return { modelType, config, ignored: given.unread(unheeded) };
}

function gpt2Config(given: ConfigFields): ModelConfig {
  const modelDimension = given.count('n_embd');
  const activation = given.text('activation_function', 'gelu_new');
  const exact = activation === 'gelu';
  if (!exact && activation !== 'gelu_new' && activation !== 'gelu_pytorch_tanh')
    throw given.refusal('activation_function', 'is not supported: gelu_new, gelu_pytorch_tanh and gelu are');
  given.mustBe('scale_attn_weights', [true], 'scores are divided by the root of the features of a head');
  given.mustBe('scale_attn_by_inverse_layer_idx', [false], 'all layers scale alike');
  given.mustBe('add_cross_attention', [false], 'there is no encoder');
  return {
    vocabularySize: given.count('vocab_size'),
    contextLength: given.count('n_positions'),
    modelDimension,
    feedForwardDimension: given.count('n_inner', 4 * modelDimension),
    layers: given.count('n_layer'),
    heads: given.count('n_head'),
    ...{ attentionBias: 'all', feedForward: exact ? 'gelu' : 'gelu-tanh', feedForwardBias: true },
    ...{ norm: 'layer', normEpsilon: given.number('layer_norm_epsilon', 1e-5), positions: 'learned' },
    tieWordEmbeddings: given.flag('tie_word_embeddings', true),
  };
}

/** What `transformers` takes where a config does not say; where it says null, as many as there are of queries. */
const headsOfKeys = { llama: undefined, mistral: 8, qwen2: 32, qwen3: 32 } as const;

function llamaConfig(given: ConfigFields, modelType: Exclude<ModelType, 'gpt2'>): ModelConfig {
  given.mustBe('hidden_act', ['silu', 'swish'], 'the feed-forward network is SwiGLU, with silu');
  const heads = given.count('num_attention_heads');
  const modelDimension = given.count('hidden_size');
  const ownDimension = modelType === 'qwen3' ? 128 : modelDimension / heads;
  const contextLength = given.count('max_position_embeddings');
  const allBiases = modelType !== 'mistral' && modelType !== 'qwen2' && given.flag('attention_bias', false);
  const usualHeads = given.has('num_key_value_heads') ? undefined : headsOfKeys[modelType];
  const queryBias = modelType === 'qwen2' ? 'query-key-value' : 'none';
  return {
    vocabularySize: given.count('vocab_size'),
    ...{ contextLength, modelDimension },
    feedForwardDimension: given.count('intermediate_size'),
    layers: given.count('num_hidden_layers'),
    heads,
    keyValueHeads: given.count('num_key_value_heads', usualHeads ?? heads),
    headDimension: given.number('head_dim', ownDimension),
    attentionBias: allBiases ? 'all' : queryBias,
    queryKeyNorm: modelType === 'qwen3',
    feedForwardBias: modelType === 'llama' && given.flag('mlp_bias', false),
    normEpsilon: given.number('rms_norm_eps', 1e-6),
    ...ropeOfConfig(given, contextLength),
    ...windowOfConfig(given, modelType),
    tieWordEmbeddings: given.flag('tie_word_embeddings', false),
  };
}
