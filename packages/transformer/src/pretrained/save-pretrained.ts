import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkOptions, checkText, noGrad, scope } from '@roofline/tensor-core';
import { writeSafetensors } from '../checkpoint/safetensors.ts';
import { type ModelConfig, ModelConfigError, wholeConfig } from '../model/model-config.ts';
import { type TransformerLM, requireModel } from '../model/transformer-lm.ts';
import type { ModelType } from './model-types.ts';
import { readObject } from './read-config.ts';
import { ropeParameters } from './rope-fields.ts';
import { storedOf, storedTensors } from './stored-tensors.ts';
import { windowFields } from './window-fields.ts';

/** Options of `savePretrained`. */
export interface SavePretrainedOptions {
  /**
   * The folder that the model came from: its tokenizer, its generation_config.json and the numbers of its special tokens go with
   * the model. Default none.
   */
  readonly from?: string;
}

/** Files of a model that have nothing to do with its weights. */
const companions = [
  ...['generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json'],
  ...['tokenizer.model', 'vocab.json', 'merges.txt', 'added_tokens.json', 'chat_template.jinja'],
];

/**
 * Writes config.json and model.safetensors, which `AutoModelForCausalLM.from_pretrained(folder)` of `transformers` opens: as Llama,
 * Mistral, Qwen2, Qwen3 or GPT-2, whichever has the layers of the model. The folder is made if it is not there; weights have the dtype of the
 * parameters. The presets, too, are Llamas. Throws a ModelConfigError for a model that none of them is.
 */
export function savePretrained(
  model: TransformerLM,
  folder: string,
  options: SavePretrainedOptions = {},
): void {
  requireModel('savePretrained', model);
  checkText('savePretrained', 'the folder', folder);
  checkOptions('savePretrained', options, ['from']);
  const { from } = options;
  if (from !== undefined) checkText('savePretrained', 'from', from);
  const { config } = model;
  const modelType = modelTypeOf(config);
  const special = from === undefined ? {} : specialTokens(readObject(join(from, 'config.json')));
  const { dtype } = model.lmHead.weight;
  mkdirSync(folder, { recursive: true });
  writeWeights(model, modelType, join(folder, 'model.safetensors'));
  const fields = { ...fieldsOf(modelType, config), dtype, torch_dtype: dtype, ...special };
  writeFileSync(join(folder, 'config.json'), `${JSON.stringify(fields, null, 2)}\n`);
  if (from === undefined || from === folder) return;
  for (const name of companions)
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(folder, name));
}

function specialTokens(fields: Record<string, unknown>): Record<string, unknown> {
  const names = ['bos_token_id', 'eos_token_id', 'pad_token_id'];
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)));
}

function writeWeights(model: TransformerLM, modelType: ModelType, path: string): void {
  const parameters = new Map(model.namedParameters());
  const sources = storedTensors(modelType, model.config).map((stored) => {
    const parts = stored.parts.map((part) => parameters.get(part)!);
    const joined = () => storedOf(stored, parts, model.config);
    const rows = parts.reduce((sum, { shape }) => sum + shape[0]!, 0);
    const upright = [rows, ...parts[0]!.shape.slice(1)];
    return {
      name: stored.name,
      dtype: parts[0]!.dtype,
      shape: stored.transposed ? upright.reverse() : upright,
      read: () => {
        const { buffer, byteOffset, byteLength } = noGrad(() => scope(() => joined().toTypedArray()));
        return new Uint8Array(buffer, byteOffset, byteLength);
      },
    };
  });
  writeSafetensors(path, sources, { format: 'pt' });
}

/** The type of `transformers` that has the layers of a model. */
function modelTypeOf(config: ModelConfig): ModelType {
  const whole = wholeConfig(config);
  const { norm, positions, feedForward, attentionBias, feedForwardBias, queryKeyNorm } = whole;
  const { modelDimension, headDimension, heads, keyValueHeads, slidingWindow } = whole;
  const seesAll = slidingWindow === undefined;
  const isMistral = !seesAll && whole.fullAttentionLayers.length === 0 && attentionBias === 'none';
  const kinds = `${norm} norm, ${positions} positions, ${feedForward}`;
  if (kinds === 'rms norm, rotary positions, swiglu') {
    if (queryKeyNorm && attentionBias !== 'query-key-value' && !feedForwardBias) return 'qwen3';
    if (!queryKeyNorm && attentionBias === 'query-key-value' && !feedForwardBias) return 'qwen2';
    if (!queryKeyNorm && attentionBias !== 'query-key-value' && seesAll) return 'llama';
    if (!queryKeyNorm && isMistral && !feedForwardBias) return 'mistral';
  }
  const isGpt2 = norm === 'layer' && positions === 'learned' && feedForward !== 'swiglu';
  const isDense = headDimension * heads === modelDimension && keyValueHeads === heads;
  if (isGpt2 && seesAll && isDense && attentionBias === 'all' && feedForwardBias && !queryKeyNorm)
    return 'gpt2';
  throw new ModelConfigError(
    `savePretrained: transformers has no model with ${kinds}, attentionBias ${attentionBias}, feedForwardBias ${feedForwardBias}, ` +
      `queryKeyNorm ${queryKeyNorm}, slidingWindow ${slidingWindow}, ${heads} heads of ${headDimension} and ${keyValueHeads} of keys; save it by saveCheckpoint.`,
  );
}

const architectures = {
  ...{ llama: 'LlamaForCausalLM', mistral: 'MistralForCausalLM', qwen2: 'Qwen2ForCausalLM' },
  ...{ qwen3: 'Qwen3ForCausalLM', gpt2: 'GPT2LMHeadModel' },
} as const satisfies Record<ModelType, string>;

function fieldsOf(modelType: ModelType, config: ModelConfig): Record<string, unknown> {
  const whole = wholeConfig(config);
  const common = {
    architectures: [architectures[modelType]],
    model_type: modelType,
    vocab_size: whole.vocabularySize,
    tie_word_embeddings: whole.tieWordEmbeddings,
  };
  if (modelType === 'gpt2') {
    return {
      ...common,
      ...{ n_positions: whole.contextLength, n_embd: whole.modelDimension, n_layer: whole.layers },
      ...{ n_head: whole.heads, n_inner: whole.feedForwardDimension },
      activation_function: whole.feedForward === 'gelu' ? 'gelu' : 'gelu_new',
      layer_norm_epsilon: whole.normEpsilon,
      ...{ attn_pdrop: 0, embd_pdrop: 0, resid_pdrop: 0 },
    };
  }
  const rope = ropeParameters(whole.ropeTheta, whole.ropeScaling);
  return {
    ...common,
    ...{ max_position_embeddings: whole.contextLength, hidden_size: whole.modelDimension },
    ...{ intermediate_size: whole.feedForwardDimension, num_hidden_layers: whole.layers, hidden_act: 'silu' },
    ...{ num_attention_heads: whole.heads, num_key_value_heads: whole.keyValueHeads },
    ...{ head_dim: whole.headDimension, rms_norm_eps: whole.normEpsilon, attention_dropout: 0 },
    ...(modelType === 'llama' || modelType === 'qwen3'
      ? { attention_bias: whole.attentionBias === 'all' }
      : {}),
    ...(modelType === 'llama' ? { mlp_bias: whole.feedForwardBias } : {}),
    ...windowFields(modelType, config),
    // Both, so that versions before 5 open it too.
    ...{ rope_parameters: rope, rope_theta: whole.ropeTheta },
    ...(whole.ropeScaling === undefined ? {} : { rope_scaling: rope }),
  };
}
