import { readFileSync } from 'node:fs';
import { scheduleKinds } from '@roofline/optim';
import type { InferredOptionTypes } from 'yargs';
import { parse } from 'yaml';
import { modelAttentions } from '../attention/kinds.ts';
import { type Flags, jsonFlag } from '../cli/command.ts';
import { ddpBackends } from '../benchmarks/ddp/parameters.ts';
import { choiceOf } from '../cli/flags/choices.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import { parseNumber, parsePath, parsePositiveNumber, parseWholeNumber } from '../cli/option-values.ts';
import { UsageError } from '../errors.ts';
import { executions } from '../execution/kinds.ts';
import { dtypes } from '../measuring/ceilings.ts';
import { modelFlags } from '../model/flags.ts';
import { flagOfSetting, type GivenSettings, trainModes } from './settings.ts';

const whole = (flag: string, least: number, describe: string, otherwise: string) =>
  ({
    type: 'string',
    describe,
    defaultDescription: otherwise,
    coerce: parseWholeNumber(flag, least),
  }) as const;
const decimal = (flag: string, describe: string, otherwise: string, coerce = atLeastZero(flag)) =>
  ({ type: 'string', describe, defaultDescription: otherwise, coerce }) as const;

/** What `roofline train` takes. No flag has its default here: what a training was begun with takes its place where it goes on. */
export const trainFlags = {
  data: {
    type: 'string',
    describe: 'A text, read by bytes, or a file of `roofline tokenize`',
    coerce: parsePath('data'),
  },
  out: { type: 'string', describe: 'Folder of checkpoints, log and report', coerce: parsePath('out') },
  resume: {
    type: 'string',
    describe: 'Go on with the training of this folder, from its newest checkpoint, or from this checkpoint',
    coerce: parsePath('resume'),
  },
  config: {
    type: 'string',
    config: true,
    describe: 'A YAML file with any of these flags; those of the line come first',
    configParser: readConfig,
  },
  ...modelFlags,
  size: { ...modelFlags.size, describe: 'One of the presets; `roofline model` lists them' },
  context: whole('context', 1, 'Tokens of a window', '256'),
  batch: whole('batch', 1, 'Windows of a step, of all ranks and parts together', '32'),
  accumulate: whole('accumulate', 1, 'Parts that a step goes through the model in, for less memory', '1'),
  steps: whole('steps', 1, 'The step at which training ends', '2000'),
  lr: decimal('lr', 'The highest learning rate', '3e-4', parsePositiveNumber('lr')),
  'min-lr': decimal('min-lr', 'The learning rate at the end', 'a tenth of --lr'),
  schedule: {
    ...choiceOf('schedule', scheduleKinds),
    describe: 'How the learning rate falls',
    defaultDescription: 'cosine',
  },
  warmup: whole('warmup', 0, 'Steps over which it rises', 'a tenth of the steps, at most 100'),
  'schedule-steps': whole(
    'schedule-steps',
    1,
    'The step at which it has fallen',
    '--steps as the training was begun',
  ),
  clip: decimal('clip', 'The largest norm of the gradients; 0 for any', '1'),
  'weight-decay': decimal(
    'weight-decay',
    'Of the weights of products; norms and embeddings have none',
    '0.1',
  ),
  dtype: {
    ...choiceOf('dtype', dtypes),
    describe: 'Of products',
    defaultDescription: 'bfloat16 on a GPU, else float32',
  },
  attention: {
    ...choiceOf('attention', modelAttentions),
    describe: 'How the model attends',
    defaultDescription: 'flash on a GPU, else plain',
  },
  execution: {
    ...choiceOf('execution', executions),
    describe: 'How a step runs',
    defaultDescription: 'compiled',
  },
  'eval-every': whole(
    'eval-every',
    0,
    'Steps between two looks at the validation loss; 0 for the end alone',
    '200',
  ),
  'eval-batches': whole('eval-batches', 1, 'Batches that it is the mean of', '8'),
  'save-every': whole('save-every', 0, 'Steps between two checkpoints; 0 for the end alone', '500'),
  keep: whole('keep', 1, 'Checkpoints that are kept, the newest', '2'),
  validation: decimal(
    'validation',
    'Share of the tokens, at their end, that is for validation',
    '0.1',
    share('validation'),
  ),
  spike: decimal(
    'spike',
    'Nats beyond the noise above the usual loss at which the training stops; 0 for never',
    '2',
  ),
  seed: whole('seed', 0, 'Of weights, and of the order of windows', '0'),
  nproc: whole('nproc', 1, 'Ranks that make each step together, each a process of this machine', '1'),
  mode: {
    ...choiceOf('mode', trainModes),
    describe:
      "What each rank holds: all of it; all but its share of AdamW's state; or its share of the parameters too, among all ranks or among " +
      'half of them',
    defaultDescription: 'ddp',
  },
  backend: {
    ...choiceOf('backend', ddpBackends),
    describe: 'What connects ranks: gloo on the CPU, nccl on GPUs; as --device says if not given',
  },
  ...deviceFlag,
  ...jsonFlag,
} as const satisfies Flags;

export type TrainArguments = InferredOptionTypes<typeof trainFlags>;

/** The settings that flags gave, without the model. */
export function givenSettings(args: TrainArguments): GivenSettings {
  const values: Readonly<Record<string, unknown>> = args;
  const given = Object.entries(flagOfSetting).map(([name, flag]) => [name, values[flag]] as const);
  return Object.fromEntries(given.filter(([name, value]) => name !== 'model' && value !== undefined));
}

/** yargs reads values as words of the command line. */
function readConfig(path: string): Record<string, unknown> {
  let config: unknown;
  try {
    config = parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new UsageError(`--config ${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new UsageError(`--config ${path} wants lines such as \`steps: 2000\`, with the names of flags.`);
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => {
      if (!Object.hasOwn(trainFlags, name) || name === 'config')
        throw new UsageError(`--config ${path}: there is no flag --${name}.`);
      if (typeof value === 'boolean') return [name, value];
      if (typeof value === 'string' || typeof value === 'number') return [name, String(value)];
      throw new UsageError(`--config ${path}: ${name} wants one value.`);
    }),
  );
}

function atLeastZero(flag: string): (given: string | readonly string[]) => number {
  return parseNumber(flag, 'a number of at least 0', (value) => value >= 0 && Number.isFinite(value));
}

function share(flag: string): (given: string | readonly string[]) => number {
  return parseNumber(flag, 'a share from 0 to below 1', (value) => value >= 0 && value < 1);
}
