import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { type Device, RooflineError, checkOptions, checkText, scope } from '@roofline/tensor-core';
import { TransformerLM, type TransformerOptions } from '../model/transformer-lm.ts';
import { deferWeights } from '../module/building.ts';
import { type StateSource, fillParameters, matchState } from '../module/state.ts';
import { type GenerationDefaults, readGenerationConfig } from './generation-config.ts';
import { type PretrainedConfig, readPretrainedConfig } from './read-config.ts';
import { type StoredTensor, isConstant, partOf, prefixOf, storedTensors } from './stored-tensors.ts';
import { WeightFiles } from './weight-files.ts';

/** Options of `loadPretrained`: those of the model, whose weights are read, and how long its context is to be. */
export interface LoadPretrainedOptions extends Omit<TransformerOptions, 'seed'> {
  /** The longest sequence, at most that of the config. Default that of the config. */
  readonly contextLength?: number;
}

/** A model of a folder. */
export interface PretrainedModel extends Omit<PretrainedConfig, 'config'> {
  readonly model: TransformerLM;
  /** Options of `generate` by generation_config.json; none without that file. */
  readonly generation: GenerationDefaults;
}

/**
 * Reads a model that `transformers` saved, of Llama, Mistral, Qwen2, Qwen3 or GPT-2: config.json, model.safetensors or the several
 * files of model.safetensors.index.json, and generation_config.json where it is there. Weights are cast to `dtype`, float32
 * unless given, whatever the file's is; one tensor at a time passes through the host's memory.
 *
 * Throws a PretrainedConfigError that names the field for what models here do not have, a SafetensorsError for damaged or missing
 * files, and a StateError that lists tensors that are missing, unexpected or of another shape.
 *
 * @example
 * ```ts
 * import { generate, loadPretrained } from '@roofline/transformer';
 *
 * function continued(folder: string, prompt: number[]): number[] {
 *   const { model, generation } = loadPretrained(folder, { device: 'auto' });
 *   return generate(model, prompt, generation);
 * }
 * ```
 */
export function loadPretrained(folder: string, options: LoadPretrainedOptions = {}): PretrainedModel {
  checkText('loadPretrained', 'the folder', folder);
  checkOptions('loadPretrained', options, [
    ...(['device', 'dtype', 'attention', 'recompute', 'contextLength'] as const),
  ]);
  const { contextLength, ...modelOptions } = options;
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new RooflineError(
      'ARGUMENT',
      `loadPretrained: ${folder} is no folder; name the one that holds config.json and model.safetensors.`,
    );
  }
  const read = readPretrainedConfig(folder, { contextLength });
  const generation = readGenerationConfig(folder);
  using files = new WeightFiles(folder);
  const model = deferWeights(() => new TransformerLM(read.config, modelOptions));
  try {
    loadWeights(model, files, read);
  } catch (error) {
    model.dispose();
    throw error;
  }
  return { model, generation, modelType: read.modelType, ignored: read.ignored };
}

function loadWeights(model: TransformerLM, files: WeightFiles, read: PretrainedConfig): void {
  const { modelType, config } = read;
  const shapes = new Map(
    [...model.namedParameters('', { removeDuplicate: false })].map(([name, { shape }]) => [name, shape]),
  );
  const names = new Map<string, string>();
  const sources = new Map<string, StateSource>();
  const used = new Set<string>();
  for (const stored of withTiedHead(storedTensors(modelType, config), config.tieWordEmbeddings === true)) {
    const name = nameIn(files, stored.name, prefixOf(modelType));
    const rows = stored.parts.map((part) => shapes.get(part)![0]!);
    stored.parts.forEach((part, index) => {
      const label = stored.parts.length === 1 ? stored.name : `${stored.name}, of which ${part}`;
      names.set(part, label);
      if (name === undefined) return;
      used.add(name);
      sources.set(label, sourceOf(files, name, stored, { index, rows, read }));
    });
  }
  for (const [name, { shape, dtype }] of files.tensors) {
    if (used.has(name) || isConstant(name)) continue;
    sources.set(name, { shape, dtype, read: (device: Device) => files.read(name, device) });
  }
  const parameters = [...model.namedParameters('', { removeDuplicate: false })];
  const labelled = parameters.map(([name, parameter]) => [names.get(name)!, parameter] as const);
  fillParameters(matchState(`loadPretrained: ${basename(files.folder)}`, sources, labelled, {}).loads);
}

/** Files of a model whose head is tied may hold it all the same. */
function withTiedHead(stored: readonly StoredTensor[], isTied: boolean): readonly StoredTensor[] {
  if (!isTied) return stored;
  const head = { name: 'lm_head.weight', parts: ['lm_head.weight'], transposed: false, turned: false };
  return [...stored, head];
}

/** The name that a file has, with the prefix of the whole model or without. */
function nameIn(files: WeightFiles, name: string, prefix: string): string | undefined {
  return [name, name.replace(prefix, '')].find((candidate) => files.tensors.has(candidate));
}

interface Place {
  readonly index: number;
  readonly rows: readonly number[];
  readonly read: PretrainedConfig;
}

/** A parameter in a stored tensor. The shape is that of the parameter where the tensor's fits, else the tensor's, to be refused. */
function sourceOf(
  files: WeightFiles,
  name: string,
  stored: StoredTensor,
  { index, rows, read: { config } }: Place,
): StateSource {
  const { shape, dtype } = files.tensors.get(name)!;
  const upright = stored.transposed ? [...shape].reverse() : shape;
  const total = rows.reduce((sum, count) => sum + count, 0);
  const fits = upright[0] === total;
  return {
    shape: fits && rows.length > 1 ? [rows[index]!, ...upright.slice(1)] : upright,
    dtype,
    read: (device) => scope(() => partOf(stored, files.read(name, device), { index, rows, config })),
  };
}
