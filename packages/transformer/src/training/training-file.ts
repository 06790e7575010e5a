import {
  Generator,
  RooflineError,
  type Tensor,
  checkCount,
  checkFunction,
  checkObject,
  checkOptions,
  checkText,
  defaultGenerator,
  device,
  scope,
} from '@roofline/tensor-core';
import { checkMetadata } from '../checkpoint/safetensors-header.ts';
import { SafetensorsFile } from '../checkpoint/safetensors.ts';
import { placesKey } from '../checkpoint/sharded-parts.ts';
import { readTensor, saveTensors } from '../checkpoint/tensor-file.ts';
import { type AnyModule, requireModule } from '../module/module.ts';
import { type StateSource, matchState, overwriteParameters } from '../module/state.ts';

/** A file that holds no training, or not what is to be loaded of it. */
export class TrainingFileError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('TRAINING_FILE', message, options);
  }
}

/** What has a state of tensors and text: an optimizer of @roofline/optim. */
export interface SavableOptimizer {
  stateDict(): SavableState;
  loadStateDict(state: SavableState): void;
}

/** Tensors and text by their names. */
export interface SavableState {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** What has a state that JSON holds: a GradientScaler of @roofline/optim. */
export interface SavableScaler {
  stateDict(): unknown;
  loadStateDict(state: never): void;
}

/** What has a place that JSON holds: a `TokenLoader`. */
export interface SavableData {
  state(): unknown;
  load(state: never): void;
}

/** What a training is made of. What is left out is neither saved nor loaded. */
export interface TrainingParts {
  readonly model: AnyModule;
  readonly optimizer?: SavableOptimizer;
  readonly scaler?: SavableScaler;
  readonly data?: SavableData;
  /** Where random numbers come from, as those of dropout. Default `defaultGenerator`. */
  readonly generator?: Generator;
}

/** How far a training is. */
export interface TrainingPlace {
  /** The step that comes next: so many have been made. */
  readonly step: number;
  /** The `description` of its schedule; null for none. */
  readonly schedule?: object | null;
  /** Text of your own, as the options that the training was begun with; under other names than `format` and `parts`. */
  readonly metadata?: Readonly<Record<string, string>>;
}

const partNames = ['model', 'optimizer', 'scaler', 'data', 'generator'] as const;
/** The name under which the metadata hold all but tensors. */
export const key = 'roofline.training';

/** What stands under `key`, as JSON. */
export interface Header {
  readonly version: 1;
  readonly step: number;
  readonly schedule: TrainingPlace['schedule'];
  readonly generator: unknown;
  /** Of several ranks, each one's; `generator` is the first. */
  readonly generators?: readonly unknown[];
  readonly scaler?: unknown;
  readonly data?: unknown;
  /** The text of the optimizer's state. */
  readonly optimizer?: Readonly<Record<string, string>>;
}

/**
 * Writes the whole state of a training to one safetensors file: weights as `model.NAME`, the optimizer's tensors as
 * `optimizer.NAME`, and as text the step, the schedule's description, the gradient scaler, random numbers and the place in the data.
 * The file appears under its name when all of it is on the disk: a process or machine that stops meanwhile leaves the one before.
 * Call it between two steps. Throws what the file system throws; the file before is then as it was.
 *
 * @example
 * ```ts
 * import { AdamW } from '@roofline/optim';
 * import { TransformerLM, loadTraining, presetConfig, saveTraining } from '@roofline/transformer';
 *
 * const model = new TransformerLM(presetConfig('tiny'));
 * const optimizer = new AdamW(model.parameters());
 * saveTraining('training.safetensors', { model, optimizer }, { step: 0 });
 * const { step } = loadTraining('training.safetensors', { model, optimizer });
 * console.log(`goes on with step ${step}`);
 * ```
 */
export function saveTraining(path: string, parts: TrainingParts, place: TrainingPlace): void {
  checkText('saveTraining', 'the path', path);
  checkParts('saveTraining', parts);
  checkPlace('saveTraining', place);
  writeTraining(path, parts, place);
}

/** The same of parts that have been checked, and with the generators of all ranks where there are several. */
export function writeTraining(
  path: string,
  parts: TrainingParts,
  place: TrainingPlace,
  generators?: Header['generators'],
): void {
  const { model, optimizer } = parts;
  scope(() => {
    const state = optimizer?.stateDict();
    // Some of it is read from the device as it is asked for.
    const metadata = metadataOf(parts, place, state && { ...state.metadata }, generators);
    const tensors = Object.fromEntries([
      ...[...model.namedParameters()].map(([name, tensor]) => [`model.${name}`, tensor] as const),
      ...Object.entries(state?.tensors ?? {}).map(([name, tensor]) => [`optimizer.${name}`, tensor] as const),
    ]);
    saveTensors({ tensors, metadata }, path);
  });
}

/** All that a file holds besides tensors; `optimizer` is the text of its state, `generators` are those of all ranks. */
export function metadataOf(
  { scaler, data, generator = defaultGenerator }: Pick<TrainingParts, 'scaler' | 'data' | 'generator'>,
  { step, schedule = null, metadata = {} }: TrainingPlace,
  optimizer: Header['optimizer'],
  generators: Header['generators'] = [],
): Record<string, string> {
  const header: Header = {
    ...{ version: 1, step, schedule, generator: generator.stateDict() },
    ...(generators.length > 1 && { generators }),
    ...(scaler && { scaler: scaler.stateDict() }),
    ...(data && { data: data.state() }),
    ...(optimizer && { optimizer }),
  };
  return { format: 'pt', ...metadata, [key]: JSON.stringify(header) };
}

/** What a file says of a training: `step` is the one that comes next. */
export type SavedTraining = Required<TrainingPlace>;

/**
 * Loads the state of a training from a file of `saveTraining` into its parts, and returns its place. Weights, moments and all else go on
 * to the last bit. A part that is not given is not loaded: the model alone generates text. Throws a SafetensorsError for a damaged
 * file, a TrainingFileError for one that holds no training or lacks a part that is given, and what the parts throw for a state that
 * is not theirs, as a StateError for weights of other shapes. Weights, the place in the data and moments are checked before any of
 * them changes.
 */
export function loadTraining(path: string, parts: TrainingParts): SavedTraining {
  checkText('loadTraining', 'the path', path);
  checkParts('loadTraining', parts);
  using file = new SafetensorsFile(path);
  const header = headerOf(file);
  const { model, optimizer, scaler, data, generator = defaultGenerator } = parts;
  requireSaved('loadTraining', path, header, parts);
  const sources = sourcesUnder('model.', file);
  const { loads } = matchState(file.path, sources, model.namedParameters(), {});
  const before = data?.state();
  data?.load(header.data as never);
  try {
    if (optimizer) loadOptimizer(optimizer, file, header);
    overwriteParameters(loads);
  } catch (error) {
    data?.load(before as never);
    throw error;
  }
  scaler?.loadStateDict(header.scaler as never);
  generator.loadStateDict(header.generator as never);
  return placeOf(file, header);
}

/** Throws a TrainingFileError for a part that is given and was not saved. */
export function requireSaved(
  owner: string,
  path: string,
  header: Header,
  parts: { readonly [Name in 'optimizer' | 'scaler' | 'data']?: unknown },
): void {
  for (const name of ['optimizer', 'scaler', 'data'] as const) {
    if (parts[name] === undefined || header[name] !== undefined) continue;
    throw new TrainingFileError(
      `${owner}: ${path} was saved without the state of \`${name}\`; leave it out, or save the training with it.`,
    );
  }
}

/**
 * What a file of `saveTraining` says of its training, without reading a tensor. Throws a SafetensorsError for a damaged file, and a
 * TrainingFileError for one that holds no training.
 */
export function describeTraining(path: string): SavedTraining {
  checkText('describeTraining', 'the path', path);
  using file = new SafetensorsFile(path);
  return placeOf(file, headerOf(file));
}

/** A file's text. */
export type FileMetadata = Pick<SafetensorsFile, 'path' | 'metadata'>;

/** Names in the metadata of a file that are not the caller's: what is in it, and where parts of sharded tensors belong. */
const ownNames: readonly string[] = [key, 'format', placesKey];

export function placeOf(file: FileMetadata, { step, schedule = null }: Header): SavedTraining {
  const others = Object.entries(file.metadata).filter(([name]) => !ownNames.includes(name));
  return { step, schedule, metadata: Object.fromEntries(others) };
}

export function headerOf(file: FileMetadata): Header {
  let header: Header;
  try {
    header = JSON.parse(file.metadata[key] ?? 'null') as Header;
  } catch (cause) {
    throw new TrainingFileError(
      `${file.path}: its text of the training is damaged. Load another checkpoint.`,
      { cause },
    );
  }
  if (header?.version === 1 && Number.isSafeInteger(header.step)) return header;
  throw new TrainingFileError(
    header?.version === undefined
      ? `${file.path} holds no training; name a file that saveTraining wrote.`
      : `${file.path} holds a training of version ${String(header.version)}, this release reads version 1.`,
  );
}

function loadOptimizer(optimizer: SavableOptimizer, file: SafetensorsFile, header: Header): void {
  scope(() => {
    const cpu = device('cpu');
    const tensors = [...sourcesUnder('optimizer.', file)].map(
      ([name, { read }]) => [name, read(cpu)] as const,
    );
    optimizer.loadStateDict({ tensors: Object.fromEntries(tensors), metadata: header.optimizer! });
  });
}

export function sourcesUnder(prefix: string, file: SafetensorsFile): Map<string, StateSource> {
  const named = [...file.tensors].filter(([name]) => name.startsWith(prefix));
  return new Map(
    named.map(([name, { shape, dtype }]) => [
      name.slice(prefix.length),
      { shape, dtype, read: (to) => readTensor(file, name, to) },
    ]),
  );
}

/** The methods that each part is asked for. */
const methods = {
  ...{ optimizer: ['stateDict', 'loadStateDict'], scaler: ['stateDict', 'loadStateDict'] },
  ...{ data: ['state', 'load'], generator: ['stateDict', 'loadStateDict'] },
} as const;

export function checkPlace(owner: string, place: TrainingPlace): void {
  checkOptions(`${owner}: the place`, place, ['step', 'schedule', 'metadata']);
  const { step, schedule = null, metadata = {} } = place;
  checkCount(owner, 'step', step);
  if (schedule !== null) checkObject(owner, 'schedule', schedule);
  checkMetadata(owner, metadata);
  const taken = Object.keys(metadata).find((name) => ownNames.includes(name));
  if (taken === undefined) return;
  throw new TrainingFileError(
    `${owner}: the metadata have "${taken}", a name that the file itself needs; take another.`,
  );
}

export function checkParts(owner: string, parts: TrainingParts): void {
  checkOptions(`${owner}: the training`, parts, partNames);
  requireModule(owner, parts.model);
  for (const [name, wanted] of Object.entries(methods)) {
    const part = parts[name as keyof typeof methods] as Record<string, unknown> | undefined;
    if (part === undefined) continue;
    for (const method of wanted) checkFunction(owner, `${method} of \`${name}\``, part?.[method]);
  }
}
