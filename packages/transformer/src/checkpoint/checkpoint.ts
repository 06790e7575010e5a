import { checkFlag, checkOptions, checkText } from '@roofline/tensor-core';
import { type AnyModule, requireModule } from '../module/module.ts';
import { checkMetadata } from './safetensors-header.ts';
import { SafetensorsFile } from './safetensors.ts';
import {
  type StateMatch,
  type StateMatchOptions,
  type StateSource,
  matchState,
  overwriteParameters,
} from '../module/state.ts';
import { readTensor, saveTensors } from './tensor-file.ts';

/**
 * Writes all parameters to a safetensors file under the names of Stanford's cs336_basics, which PyTorch loads
 * by `model.load_state_dict(safetensors.torch.load_file(path))`. A tied parameter is written once, under its first
 * name; the metadata lead from its other names to that one, as safetensors.torch.save_model writes them and
 * safetensors.torch.load_model reads them.
 */
export function saveCheckpoint(
  model: AnyModule,
  path: string,
  metadata: Readonly<Record<string, string>> = {},
): void {
  requireModule('saveCheckpoint', model);
  checkText('saveCheckpoint', 'the path', path);
  checkMetadata('saveCheckpoint', metadata);
  const tensors = Object.fromEntries(model.namedParameters());
  saveTensors({ tensors, metadata: { format: 'pt', ...metadata, ...tiedNames(model) } }, path);
}

/** What a file and a model do not share. */
export interface LoadedCheckpoint extends StateMatch {
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Reads parameters from a safetensors file into the model, cast to its dtypes; one tensor at a time passes
 * through the host's memory. As `Module.loadStateDict` does, it throws a StateError that lists all missing and
 * unexpected names, wrong shapes and dtypes, or names a tensor with a value that the model's dtype cannot hold; and a
 * SafetensorsError for a damaged file. Whatever is thrown, the
 * model is as it was: its memory is needed once more while the file is read.
 */
export function loadCheckpoint(
  model: AnyModule,
  path: string,
  options: StateMatchOptions = {},
): LoadedCheckpoint {
  requireModule('loadCheckpoint', model);
  checkText('loadCheckpoint', 'the path', path);
  checkOptions('loadCheckpoint', options, ['strict']);
  if (options.strict !== undefined) checkFlag('loadCheckpoint', 'strict', options.strict);
  using file = new SafetensorsFile(path);
  const names = [...model.namedParameters('', { removeDuplicate: false })];
  const sources = sourcesIn(file);
  for (const [name] of names) {
    const source = sources.get(file.metadata[name] ?? name);
    if (source && !sources.has(name)) sources.set(name, source);
  }
  const { loads, missing, unexpected } = matchState(file.path, sources, names, options);
  overwriteParameters(loads);
  return { missing, unexpected, metadata: file.metadata };
}

function sourcesIn(file: SafetensorsFile): Map<string, StateSource> {
  return new Map(
    [...file.tensors].map(([name, { shape, dtype }]) => [
      name,
      { shape, dtype, read: (device) => readTensor(file, name, device) },
    ]),
  );
}

/** Of each tied parameter, its first name by its other ones. */
export function tiedNames(model: AnyModule): Record<string, string> {
  const first = new Map([...model.namedParameters()].map(([name, parameter]) => [parameter, name]));
  const names = [...model.namedParameters('', { removeDuplicate: false })];
  const others = names.filter(([name, parameter]) => first.get(parameter) !== name);
  return Object.fromEntries(others.map(([name, parameter]) => [name, first.get(parameter)!]));
}
