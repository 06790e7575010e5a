import { type Tensor, copyInPlace, formatShape, noGrad, scope } from '@roofline/tensor-core';
import { type Module, StateError } from './module.ts';
import { SafetensorsFile } from './safetensors.ts';
import { readTensor, saveTensors } from './tensor-file.ts';

type AnyModule = Module<never, unknown>;

/**
 * Writes all parameters to a safetensors file under the names of Stanford's cs336_basics, which PyTorch loads
 * by `model.load_state_dict(safetensors.torch.load_file(path))`.
 */
export function saveCheckpoint(
  model: AnyModule,
  path: string,
  metadata: Readonly<Record<string, string>> = {},
): void {
  saveTensors({ tensors: model.stateDict(), metadata: { format: 'pt', ...metadata } }, path);
}

export interface LoadCheckpointOptions {
  /** Whether the file must hold exactly the model's parameters. Default true. */
  readonly strict?: boolean;
}

/** What a file and a model do not share. */
export interface LoadedCheckpoint {
  /** Parameters that the file does not have; they keep their values. */
  readonly missing: readonly string[];
  /** Tensors of the file that the model does not have. */
  readonly unexpected: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Reads parameters from a safetensors file into the model, cast to its dtypes; one tensor at a time passes
 * through the host's memory. Throws a StateError that lists all missing and unexpected names and wrong shapes,
 * before anything is written; a SafetensorsError for a damaged file.
 */
export function loadCheckpoint(
  model: AnyModule,
  path: string,
  { strict = true }: LoadCheckpointOptions = {},
): LoadedCheckpoint {
  using file = new SafetensorsFile(path);
  const parameters = new Map(model.namedParameters());
  const missing = [...parameters.keys()].filter((name) => !file.tensors.has(name));
  const unexpected = [...file.tensors.keys()].filter((name) => !parameters.has(name));
  checkState(file, parameters, strict ? missing : [], strict ? unexpected : []);
  for (const [name, parameter] of parameters) {
    if (file.tensors.has(name)) overwrite(parameter, file, name);
  }
  return { missing, unexpected, metadata: file.metadata };
}

function checkState(
  file: SafetensorsFile,
  parameters: ReadonlyMap<string, Tensor>,
  missing: readonly string[],
  unexpected: readonly string[],
): void {
  const misshapen = [...parameters].flatMap(([name, { shape }]) => {
    const entry = file.tensors.get(name);
    if (!entry || formatShape(entry.shape) === formatShape(shape)) return [];
    return [`${name} is ${formatShape(entry.shape)}, the model's ${formatShape(shape)}`];
  });
  const complaints = [
    ...(missing.length > 0 ? [`missing: ${missing.join(', ')}`] : []),
    ...(unexpected.length > 0 ? [`unexpected: ${unexpected.join(', ')}`] : []),
    ...(misshapen.length > 0 ? [`of another shape: ${misshapen.join('; ')}`] : []),
  ];
  if (complaints.length === 0) return;
  throw new StateError(
    `${file.path} does not fit the model. ${complaints.join('. ')}. Build the model with the sizes of the file` +
      (misshapen.length > 0 ? '.' : ', or load what fits with { strict: false }.'),
    missing,
    unexpected,
  );
}

function overwrite(parameter: Tensor, file: SafetensorsFile, name: string): void {
  noGrad(() => scope(() => copyInPlace(parameter, readTensor(file, name, parameter.device))));
}
