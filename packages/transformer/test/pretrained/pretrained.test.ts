import { cpSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DType, cast, device, observeOps } from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { describe, expect, it } from 'vitest';
import {
  SafetensorsError,
  StateError,
  TransformerLM,
  countParameters,
  loadPretrained,
  loadTensors,
  presets,
  readPretrainedConfig,
  savePretrained,
  saveTensors,
} from '../../src/index.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';
import { compareWithGolden } from './compare.ts';

// Written by reference.py; the files' metadata say from which seeds and by which version of PyTorch.
const golden = join(import.meta.dirname, 'golden');
const families = readdirSync(golden);
const folder = temporaryFolder();

/** A copy of a family's folder, to be changed. */
function copyOf(family: string, name: string): string {
  const copy = folder(`${family}-${name}`);
  cpSync(join(golden, family), copy, { recursive: true });
  return copy;
}

function changeConfig(path: string, change: Readonly<Record<string, unknown>>): void {
  const file = join(path, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...config, ...change }));
}

describe.each([
  ['the CPU', () => device('cpu'), true],
  ['the emulated GPU', () => openEmulatedDevice(), hostCompilerVersion() !== null],
] as const)('on %s', (_, open, isThere) => {
  it.skipIf(!isThere)('fills weights without drawing any first', () => {
    const at = open();
    let draws = 0;
    const stop = observeOps({ before: ({ name }) => void (draws += Number(name === 'normal_')) });
    // GPT-2's queries, keys and values lie in one tensor of the file.
    const { model } = loadPretrained(join(golden, 'gpt2'), { device: at });
    stop();
    expect(draws).toBe(0);
    const [values, expected] = [model, loadPretrained(join(golden, 'gpt2')).model].map((each) =>
      [...each.parameters()].map((parameter) => parameter.toFlatArray()),
    );
    expect(values).toEqual(expected);
    const loaded = at.allocatedBytes;
    model.dispose();
    const without = at.allocatedBytes;
    const drawn = new TransformerLM(model.config, { device: at });
    expect(at.allocatedBytes).toBe(loaded);
    drawn.dispose();
    expect(at.allocatedBytes).toBe(without);
  });
});

describe.each(families)('a model of transformers, %s', (family) => {
  // Cosines and sines are float32 in every dtype, so float64 errs by their rounding; GPT-2 has none.
  it.each<[DType, number]>([
    ['float64', family === 'gpt2' ? 1e-13 : 3e-7],
    ['float32', 2e-6],
  ])('calculates in %s what the reference does', (dtype, most) => {
    const { model } = loadPretrained(join(golden, family), { dtype });
    const scratch = folder(`${family}-${dtype}-gradients`);
    const { greedy, ...errors } = compareWithGolden(model, join(golden, family), scratch);
    expect(greedy).toBe(true);
    for (const error of Object.values(errors)) expect(error).toBeLessThan(most);
  });

  it('is stored as it was loaded, bit by bit', () => {
    const { model } = loadPretrained(join(golden, family));
    const saved = folder(`${family}-saved`);
    savePretrained(model, saved, { from: join(golden, family) });
    const [before, after] = [join(golden, family), saved].map(
      (path) => loadTensors(join(path, 'model.safetensors')).tensors,
    );
    expect(Object.keys(after!).sort()).toEqual(Object.keys(before!).sort());
    for (const [name, tensor] of Object.entries(before!))
      expect(after![name]!.toFlatArray()).toEqual(tensor.toFlatArray());
    const again = loadPretrained(saved);
    expect(again.model.config).toEqual(model.config);
    expect(again.generation).toEqual({ stopToken: 2 });
  });

  it('names what is missing, unexpected or of another shape as the files do', () => {
    const path = copyOf(family, 'misfit');
    const file = join(path, 'model.safetensors');
    const { tensors, metadata } = loadTensors(file);
    const [first, second, ...rest] = Object.keys(tensors).filter((name) => /layers\.1|h\.1/.test(name));
    const { [first!]: _, ...others } = tensors;
    saveTensors({ tensors: { ...others, 'model.extra': tensors[rest[0]!]! }, metadata }, file);
    expect(() => loadPretrained(path)).toThrow(StateError);
    expect(() => loadPretrained(path)).toThrow(first);
    expect(() => loadPretrained(path)).toThrow('model.extra');
    saveTensors({ tensors: { ...tensors, [second!]: tensors[second!]!.reshape([1, -1]) }, metadata }, file);
    expect(() => loadPretrained(path)).toThrow(second);
  });
});

it('reads weights of several files by their index, and says which tensor is not where it should be', () => {
  const path = copyOf('llama', 'shards');
  const { tensors } = loadTensors(join(path, 'model.safetensors'));
  rmSync(join(path, 'model.safetensors'));
  const names = Object.keys(tensors);
  const fileOf = (i: number) => `model-0000${1 + (i % 3)}-of-00003.safetensors`;
  for (const part of [0, 1, 2]) {
    const own = names.filter((_, i) => i % 3 === part).map((name) => [name, tensors[name]!]);
    saveTensors({ tensors: Object.fromEntries(own), metadata: {} }, join(path, fileOf(part)));
  }
  const map = Object.fromEntries(names.map((name, i) => [name, fileOf(i)]));
  const index = join(path, 'model.safetensors.index.json');
  writeFileSync(index, JSON.stringify({ metadata: {}, weight_map: map }));
  const [whole, sharded] = [join(golden, 'llama'), path].map((place) =>
    loadPretrained(place).model.stateDict(),
  );
  for (const [name, tensor] of Object.entries(whole!))
    expect(sharded![name]!.toFlatArray()).toEqual(tensor.toFlatArray());

  writeFileSync(index, JSON.stringify({ weight_map: { ...map, [names[0]!]: fileOf(1) } }));
  expect(() => loadPretrained(path)).toThrow(SafetensorsError);
  expect(() => loadPretrained(path)).toThrow(names[0]);
  rmSync(index);
  expect(() => loadPretrained(path)).toThrow(
    /has neither model.safetensors nor model.safetensors.index.json/,
  );
});

it('reads bfloat16 weights exactly, into float32 unless another dtype is asked for', () => {
  const path = copyOf('qwen2', 'bfloat16');
  const file = join(path, 'model.safetensors');
  const { tensors } = loadTensors(file);
  const rounded = Object.entries(tensors).map(([name, tensor]) => [name, cast(tensor, 'bfloat16')] as const);
  saveTensors({ tensors: Object.fromEntries(rounded), metadata: {} }, file);
  const { model } = loadPretrained(path);
  expect(model.lmHead.weight.dtype).toBe('float32');
  expect(model.lmHead.weight.toFlatArray()).toEqual(
    Object.fromEntries(rounded)['model.embed_tokens.weight']!.toFlatArray(),
  );
  const low = loadPretrained(path, { dtype: 'bfloat16' }).model;
  savePretrained(low, folder('low'));
  const stored = loadTensors(join(folder('low'), 'model.safetensors')).tensors;
  for (const [name, tensor] of rounded) {
    expect(stored[name]!.dtype).toBe('bfloat16');
    expect(stored[name]!.toFlatArray()).toEqual(tensor.toFlatArray());
  }
});

it('reads checkpoints without the prefix of the whole model, with constants, and with a tied head', () => {
  const path = copyOf('gpt2', 'bare');
  const file = join(path, 'model.safetensors');
  const { tensors } = loadTensors(file);
  const bare = Object.entries(tensors).map(([name, tensor]) => [name.replace('transformer.', ''), tensor]);
  const more = {
    'h.0.attn.bias': tensors['transformer.wte.weight']!,
    'lm_head.weight': tensors['transformer.wte.weight']!,
  };
  saveTensors({ tensors: { ...Object.fromEntries(bare), ...more }, metadata: {} }, file);
  const { model, ignored, modelType } = loadPretrained(path);
  expect(model.lmHead.weight).toBe(model.tokenEmbeddings.weight);
  expect({ ignored, modelType }).toEqual({ ignored: ['resid_pdrop 0.1'], modelType: 'gpt2' });
});

it('frees the model whose weights do not fit', () => {
  const path = copyOf('llama', 'freed');
  changeConfig(path, { intermediate_size: 11 });
  const live = () => device('cpu').memoryStatistics().liveStorages;
  const before = live();
  expect(() => loadPretrained(path)).toThrow(/mlp.gate_proj.weight is \[10, 12\], the model's \[11, 12\]/);
  expect(live()).toBe(before);
});

it.each([
  // As MistralConfig and Qwen2Config of transformers 5 fill up what is left out.
  ['mistral', { sliding_window: 8 }, { slidingWindow: 8 }],
  ['mistral', { sliding_window: null }, {}],
  ['mistral', { sliding_window: undefined }, { slidingWindow: 4096 }],
  ['qwen2', { use_sliding_window: true, max_window_layers: 0 }, { slidingWindow: 4 }],
  [
    'qwen2',
    { use_sliding_window: true, max_window_layers: 1 },
    { slidingWindow: 4, fullAttentionLayers: [0] },
  ],
  ['qwen2', { use_sliding_window: true }, {}],
  ['qwen2', { use_sliding_window: true, sliding_window: null, max_window_layers: 0 }, {}],
  [
    'qwen3',
    {
      ...{ use_sliding_window: true, sliding_window: 5, max_window_layers: 0 },
      layer_types: ['sliding_attention', 'full_attention'],
    },
    { slidingWindow: 5, fullAttentionLayers: [1] },
  ],
  ['llama', { sliding_window: 5 }, {}],
] as const)('%s with %j has the windows of transformers', (family, change, expected) => {
  const path = copyOf(family, 'windows');
  changeConfig(path, change);
  const { config } = readPretrainedConfig(path);
  const { slidingWindow, fullAttentionLayers } = config;
  expect({ slidingWindow, fullAttentionLayers }).toEqual(expected);
  // What is saved says the same.
  savePretrained(loadPretrained(path).model, folder(`${family}-windows-saved`));
  expect(readPretrainedConfig(folder(`${family}-windows-saved`)).config).toEqual(config);
});

it('has no type for windows that none of transformers has', () => {
  const { config } = loadPretrained(join(golden, 'gpt2')).model;
  const model = new TransformerLM({ ...config, slidingWindow: 2 });
  expect(() => savePretrained(model, folder('no-type'))).toThrow(/slidingWindow 2/);
});

describe('what a config asks for and models here do not have', () => {
  it.each([
    [
      'llama',
      { model_type: 'gemma' },
      /model_type "gemma" is not supported: llama, mistral, qwen2, qwen3, gpt2/,
    ],
    ['llama', { hidden_act: 'gelu' }, /hidden_act "gelu" is not supported/],
    [
      'llama',
      { rope_scaling: { rope_type: 'longrope', factor: 2 } },
      /rope_type "longrope" is not supported/,
    ],
    ['llama', { rope_scaling: { rope_type: 'linear' } }, /rope_scaling has no factor/],
    ['llama', { partial_rotary_factor: 0.5 }, /partial_rotary_factor 0.5 is not supported/],
    ['llama', { quantization_config: { bits: 4 } }, /quantization_config {"bits":4} is not supported/],
    ['llama', { hidden_size: '12' }, /hidden_size must be a whole number/],
    ['llama', { num_key_value_heads: 3 }, /heads 4 must be a multiple of keyValueHeads 3/],
    ['mistral', { sliding_window: 'all' }, /sliding_window must be a whole number of one or more/],
    ['qwen2', { use_sliding_window: true, max_window_layers: 'all' }, /max_window_layers "all" is no number/],
    [
      'qwen2',
      { layer_types: ['sliding_attention', 'full_attention'] },
      /layer_types .* the config has no window/,
    ],
    ['qwen3', { layer_types: ['full_attention'] }, /layer_types .* must have as many as layers, 2/],
    ['qwen3', { layer_types: ['linear_attention'] }, /layer_types \["linear_attention"\] is not supported/],
    ['gpt2', { activation_function: 'relu' }, /activation_function "relu" is not supported/],
    [
      'gpt2',
      { scale_attn_by_inverse_layer_idx: true },
      /scale_attn_by_inverse_layer_idx true is not supported/,
    ],
    ['gpt2', { n_embd: null }, /config.json has no n_embd/],
  ] as const)('%s with %j is an error that names it', (family, change, message) => {
    const path = copyOf(family, 'refused');
    changeConfig(path, change);
    expect(() => loadPretrained(path)).toThrow(message);
    expect(() => readPretrainedConfig(join(path, 'config.json'))).toThrow(message);
  });

  it('takes a window that no sequence outgrows', () => {
    const path = copyOf('mistral', 'window');
    changeConfig(path, { sliding_window: 8 });
    expect(readPretrainedConfig(path, { contextLength: 8 }).config.contextLength).toBe(8);
    expect(() => readPretrainedConfig(path, { contextLength: 41 })).toThrow(/41 is longer than .* 40/);
  });
});

it('takes options of generate from generation_config.json', () => {
  const path = copyOf('llama', 'generation');
  const write = (fields: object) =>
    writeFileSync(join(path, 'generation_config.json'), JSON.stringify(fields));
  write({ do_sample: true, temperature: 0.6, top_p: 0.9, eos_token_id: [3, 4], max_new_tokens: 7 });
  expect(loadPretrained(path).generation).toEqual({
    ...{ temperature: 0.6, topK: 50, topP: 0.9, stopToken: [3, 4], maxNewTokens: 7 },
  });
  write({ temperature: 0.6 });
  expect(loadPretrained(path).generation).toEqual({ temperature: 0 });
});

it('saves the presets as Llamas, and refuses what transformers has no model for', () => {
  const tiny = new TransformerLM({ ...presets.tiny, vocabularySize: 50 });
  savePretrained(tiny, folder('tiny'));
  const { modelType, config } = readPretrainedConfig(folder('tiny'));
  expect([modelType, countParameters(config)]).toEqual(['llama', countParameters(tiny.config)]);
  const odd = new TransformerLM({ ...presets.tiny, norm: 'layer' });
  expect(() => savePretrained(odd, folder('odd'))).toThrow(
    /transformers has no model with layer norm, rotary positions, swiglu.*save it by saveCheckpoint/,
  );
});
