import {
  RooflineError,
  type Tensor,
  concat,
  contiguous,
  reshape,
  slice,
  transpose,
} from '@roofline/tensor-core';
import { type ModelConfig, wholeConfig } from '../model/model-config.ts';
import { parameterShapes } from '../model/parameter-count.ts';
import type { ModelType } from './model-types.ts';

/** A tensor of a checkpoint of `transformers`, and how parameters lie in it. */
export interface StoredTensor {
  readonly name: string;
  /** The names of the parameters that it holds, one after the other along their first dimension. */
  readonly parts: readonly string[];
  /** Whether a matrix is [in, out], as in GPT-2's Conv1D. */
  readonly transposed: boolean;
  /** Which of the parts are queries or keys that are turned, whose pairs lie apart: feature i with i + headDimension / 2. */
  readonly turned: boolean;
}

const llamaNames: Readonly<Record<string, string>> = {
  token_embeddings: 'model.embed_tokens',
  ln_final: 'model.norm',
  lm_head: 'lm_head',
  'attn.q_proj': 'self_attn.q_proj',
  'attn.k_proj': 'self_attn.k_proj',
  'attn.v_proj': 'self_attn.v_proj',
  'attn.output_proj': 'self_attn.o_proj',
  'attn.q_norm': 'self_attn.q_norm',
  'attn.k_norm': 'self_attn.k_norm',
  'ffn.w1': 'mlp.gate_proj',
  'ffn.w2': 'mlp.down_proj',
  'ffn.w3': 'mlp.up_proj',
  ln1: 'input_layernorm',
  ln2: 'post_attention_layernorm',
};

const gpt2Names: Readonly<Record<string, string>> = {
  token_embeddings: 'transformer.wte',
  position_embeddings: 'transformer.wpe',
  ln_final: 'transformer.ln_f',
  lm_head: 'lm_head',
  'attn.q_proj': 'attn.c_attn',
  'attn.k_proj': 'attn.c_attn',
  'attn.v_proj': 'attn.c_attn',
  'attn.output_proj': 'attn.c_proj',
  'ffn.w1': 'mlp.c_fc',
  'ffn.w2': 'mlp.c_proj',
  ln1: 'ln_1',
  ln2: 'ln_2',
};

const turnedParts = ['attn.q_proj', 'attn.k_proj', 'attn.q_norm', 'attn.k_norm'];

/** The tensors that `transformers` stores of a model, in the order of its parameters. */
export function storedTensors(modelType: ModelType, config: ModelConfig): StoredTensor[] {
  const isGpt2 = modelType === 'gpt2';
  const stored = new Map<string, StoredTensor>();
  for (const [parameter] of parameterShapes(config)) {
    const { prefix, part, kind } = partsOfName(parameter);
    const theirs = (isGpt2 ? gpt2Names : llamaNames)[part];
    if (theirs === undefined) {
      throw new RooflineError(
        'STATE',
        `a ${modelType} model of transformers has no parameter "${parameter}".`,
      );
    }
    const layer = prefix === '' ? '' : `${isGpt2 ? 'transformer.h' : 'model.layers'}.${prefix}.`;
    const name = `${layer}${theirs}.${kind}`;
    stored.set(name, {
      name,
      parts: [...(stored.get(name)?.parts ?? []), parameter],
      transposed: isGpt2 && /attn|mlp/.test(theirs) && kind === 'weight',
      turned: !isGpt2 && turnedParts.includes(part),
    });
  }
  return [...stored.values()];
}

/** `layers.3.attn.q_proj.weight` as layer 3, `attn.q_proj` and `weight`. */
function partsOfName(name: string): { prefix: string; part: string; kind: string } {
  const [, prefix = '', part, kind] = /^(?:layers\.(\d+)\.)?(.+)\.(weight|bias)$/.exec(name)!;
  return { prefix, part: part!, kind: kind! };
}

/** The prefix that `transformers` gives the names of a model with a head; names without it are read as well. */
export const prefixOf = (modelType: ModelType) => (modelType === 'gpt2' ? 'transformer.' : 'model.');

/** Constants that older checkpoints hold next to parameters: masks, and frequencies of rotary positions. */
export const isConstant = (name: string) => /\.attn\.(masked_)?bias$|rotary_emb\.inv_freq$/.test(name);

/** The parameter at `index` of a stored tensor's parts; `rows` are those of each. Call it in a scope. */
export function partOf(
  stored: StoredTensor,
  tensor: Tensor,
  { index, rows, config }: { index: number; rows: readonly number[]; config: ModelConfig },
): Tensor {
  const upright = stored.transposed ? transpose(tensor, 0, 1) : tensor;
  const start = rows.slice(0, index).reduce((sum, count) => sum + count, 0);
  const part = rows.length === 1 ? upright : slice(upright, 0, start, start + rows[index]!);
  return stored.turned ? exchangePairs(part, wholeConfig(config).headDimension, 2) : contiguous(part);
}

/** A stored tensor of its parts. Call it in a scope. */
export function storedOf(stored: StoredTensor, parts: readonly Tensor[], config: ModelConfig): Tensor {
  const joined = parts.length === 1 ? parts[0]! : concat([...parts], 0);
  if (stored.turned) {
    const { headDimension } = wholeConfig(config);
    return exchangePairs(joined, headDimension, headDimension / 2);
  }
  return contiguous(stored.transposed ? transpose(joined, 0, 1) : joined);
}

/**
 * The rows of each head seen as `length` by the rest, and exchanged: with a length of 2, halves of a head become neighbours, as
 * `rope` turns them; with half a head, neighbours become halves.
 */
function exchangePairs(x: Tensor, headDimension: number, length: number): Tensor {
  const [rows, ...rest] = x.shape as [number, ...number[]];
  const halves = reshape(x, [rows / headDimension, length, headDimension / length, ...rest]);
  return reshape(contiguous(transpose(halves, 1, 2)), x.shape);
}
