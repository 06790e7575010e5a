import { basename, dirname, resolve } from 'node:path';
import type { InferredOptionTypes } from 'yargs';
import type { Flags } from '../cli/command.ts';
import { parseList, parseWholeNumber, unknownChoice } from '../cli/option-values.ts';
import { UsageError } from '../errors.ts';
import { modelShape, type ModelShape, type NamedModel } from './shape.ts';

const dimension = (flag: string, describe: string) =>
  ({ type: 'string', describe, coerce: parseWholeNumber(flag, 1) }) as const;

/** `--size`, with the value where it is not given. */
export const sizeFlag = (otherwise: string) =>
  ({
    type: 'string',
    describe: 'Presets, between commas; `roofline model` lists them',
    defaultDescription: otherwise,
    coerce: parseList('size'),
    completions: async () => Object.keys(await loadPresets()),
  }) as const;

/** Which model: a preset, a preset with changes, all dimensions given, or that of a config of `transformers`. */
export const modelFlags = {
  size: sizeFlag('small'),
  model: {
    type: 'string',
    describe: 'Models of Hugging Face instead: folders or files of their config.json, between commas',
    coerce: parseList('model'),
  },
  'd-model': dimension('d-model', 'Width of the model: of its own, or in place of that of --size'),
  'd-ff': dimension('d-ff', 'Hidden width of the feed-forward layers'),
  layers: dimension('layers', 'Number of layers'),
  heads: dimension('heads', 'Number of attention heads'),
  vocab: dimension('vocab', 'Size of the vocabulary'),
} as const satisfies Flags;

export type ModelArguments = Partial<InferredOptionTypes<typeof modelFlags>>;

/** Throws a UsageError for those of `flags` that are given where --study runs no model, which `parts` of it would. */
export function refuseModelFlags(
  args: Readonly<Record<string, unknown>>,
  flags: readonly string[],
  { model, parts }: { readonly model: string; readonly parts: string },
): void {
  const given = flags.find((flag) => args[flag] !== undefined);
  if (given === undefined) return;
  throw new UsageError(`--${given} describes the model ${model}: add ${parts} to --study, or leave it out.`);
}

const DEFAULT_VOCABULARY = 10_000;

/** The models that the flags name. Throws UsageError for an unknown preset or missing dimensions. */
export async function chooseModels(args: ModelArguments, defaultSize: string): Promise<NamedModel[]> {
  const changes = changedDimensions(args);
  if (args.model !== undefined) return readModels(args, args.model, changes);
  const isCustom = args.size === undefined && Object.keys(changes).some((name) => name !== 'vocabularySize');
  if (isCustom)
    return [await check({ size: describeChanges('custom', changes), shape: customShape(changes) })];

  const presets = await loadPresets();
  return Promise.all(
    (args.size ?? [defaultSize]).map((size) => {
      if (!Object.hasOwn(presets, size)) throw unknownChoice('size', size, Object.keys(presets));
      const preset = presets[size]!;
      return check({ size: describeChanges(size, changes), shape: { ...preset, ...changes } });
    }),
  );
}

/** Weights are not read: what a step costs does not depend on them. */
async function readModels(
  args: ModelArguments & { readonly peer?: unknown },
  paths: readonly string[],
  changes: Partial<ModelShape>,
): Promise<NamedModel[]> {
  if (args.size !== undefined)
    throw new UsageError('--model and --size both say which model; leave one out.');
  if (args.peer !== undefined)
    throw new UsageError(
      '--peer runs the layers of the presets, not those of --model; leave one of them out.',
    );
  const { PretrainedConfigError, readPretrainedConfig } = await import('@roofline/transformer');
  return Promise.all(
    paths.map((path) => {
      try {
        const { config } = readPretrainedConfig(path);
        const shape = { ...modelShape.parse(config), ...changes };
        return check({ size: describeChanges(modelName(path), changes), shape });
      } catch (cause) {
        if (cause instanceof PretrainedConfigError)
          throw new UsageError(`--model: ${cause.message}`, { cause });
        throw cause;
      }
    }),
  );
}

/** That of the folder, or of a file of another name. */
function modelName(path: string): string {
  const whole = resolve(path);
  return basename(basename(whole) === 'config.json' ? dirname(whole) : whole, '.json');
}

/** The presets by name, smallest first. */
export async function loadPresets(): Promise<Record<string, ModelShape>> {
  const { presets } = await import('@roofline/transformer');
  return Object.fromEntries(
    Object.entries(presets).map(([name, config]) => [name, modelShape.parse(config)]),
  );
}

const dimensionFlags = [
  ['vocab', 'vocabularySize'],
  ['d-model', 'modelDimension'],
  ['d-ff', 'feedForwardDimension'],
  ['layers', 'layers'],
  ['heads', 'heads'],
] as const satisfies readonly (readonly [keyof ModelArguments, keyof ModelShape])[];

function changedDimensions(args: ModelArguments): Partial<ModelShape> {
  return Object.fromEntries(
    dimensionFlags.flatMap(([flag, name]) => (args[flag] === undefined ? [] : [[name, args[flag]]])),
  );
}

function customShape(changes: Partial<ModelShape>): ModelShape {
  const shape = { vocabularySize: DEFAULT_VOCABULARY, ...changes };
  const missing = dimensionFlags.filter(([, name]) => shape[name] === undefined).map(([flag]) => `--${flag}`);
  if (missing.length === 0) return shape as ModelShape;
  throw new UsageError(
    `A size of your own needs ${missing.join(', ')} too; or start from a preset by --size.`,
  );
}

/** `small` or, with changes, `small layers=2`: two models of one folder never share a name. */
function describeChanges(size: string, changes: Partial<ModelShape>): string {
  const words = dimensionFlags.flatMap(([flag, name]) =>
    changes[name] === undefined ? [] : [`${flag}=${changes[name]}`],
  );
  return [size, ...words].join(' ');
}

/** Throws UsageError for dimensions that do not fit together. */
async function check(model: NamedModel): Promise<NamedModel> {
  const { countParameters, ModelConfigError } = await import('@roofline/transformer');
  try {
    countParameters({ ...model.shape, contextLength: 1 });
  } catch (cause) {
    if (cause instanceof ModelConfigError) throw new UsageError(byFlags(cause.message), { cause });
    throw cause;
  }
  return model;
}

/** A message about a model's dimensions, by the flags that set them. */
function byFlags(message: string): string {
  const words = message.replace(/^\w+: /, '');
  return dimensionFlags.reduce(
    // With its value after it: `heads` is a word as well.
    (text, [flag, name]) => text.replaceAll(new RegExp(`\\b${name}(?= (?:=|\\d))`, 'g'), `--${flag}`),
    words,
  );
}
