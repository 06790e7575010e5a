import { scheduleKinds, type ScheduleDescription, type Schedule, scheduleOf } from '@roofline/optim';
import { RooflineError } from '@roofline/tensor-core';
import { z } from 'zod';
import { modelAttentions } from '../attention/kinds.ts';
import { UsageError } from '../errors.ts';
import { executions } from '../execution/kinds.ts';
import { dtypes } from '../measuring/ceilings.ts';
import { namedModel } from '../model/shape.ts';

/**
 * How ranks share a training: each has all of it, or AdamW's state is split (ZeRO stage 1), or parameters too (`fullyShard`), over all
 * ranks or over each half of them; one process alone has all in any case.
 */
export const trainModes = ['ddp', 'zero1', 'fsdp', 'hybrid'] as const;

/** How often ranks have all of the model together. */
export function replicasOf({ mode, ranks }: Pick<TrainSettings, 'mode' | 'ranks'>): number {
  return mode === 'hybrid' && ranks > 1 ? 2 : 1;
}

const count = z.int().nonnegative();
const positive = z.number().positive();

/** What a training is: all of it is in each checkpoint. */
export const trainSettings = z.object({
  data: z.string(),
  model: namedModel,
  context: count.min(1),
  /** Windows of a step, of all ranks and parts together. */
  batch: count.min(1),
  accumulate: count.min(1),
  steps: count.min(1),
  learningRate: positive,
  minimumLearningRate: z.number().nonnegative(),
  schedule: z.enum(scheduleKinds as [ScheduleDescription['kind']]),
  warmup: count,
  /** The step at which the schedule ends, which stays where `steps` becomes another. */
  scheduleSteps: count.min(1),
  /** The largest norm of the gradients; 0 for any. */
  clip: z.number().nonnegative(),
  weightDecay: z.number().nonnegative(),
  dtype: z.enum(dtypes),
  attention: z.enum(modelAttentions),
  execution: z.enum(executions),
  evalEvery: count,
  evalBatches: count.min(1),
  saveEvery: count,
  keep: count.min(1),
  /** The share of the tokens that is for validation; 0 for none. */
  validation: z.number().min(0).lt(1),
  /** A loss so many nats beyond the noise above the usual stops the training; 0 for none. */
  spike: z.number().nonnegative(),
  seed: count,
  /** Processes that make each step together. Older checkpoints are of one. */
  ranks: count.min(1).default(1),
  mode: z.enum(trainModes).default('ddp'),
});
export type TrainSettings = z.infer<typeof trainSettings>;

/** Those that flags may give; the model is named by flags of its own. */
export type GivenSettings = Partial<Omit<TrainSettings, 'model'>> & Pick<Partial<TrainSettings>, 'model'>;

/** The flag of each setting. */
export const flagOfSetting: Readonly<Record<keyof TrainSettings, string>> = {
  ...{ data: 'data', model: 'size', context: 'context', batch: 'batch', accumulate: 'accumulate' },
  ...{ steps: 'steps', learningRate: 'lr', minimumLearningRate: 'min-lr', schedule: 'schedule' },
  ...{ warmup: 'warmup', scheduleSteps: 'schedule-steps', clip: 'clip', weightDecay: 'weight-decay' },
  ...{ dtype: 'dtype', attention: 'attention', execution: 'execution', evalEvery: 'eval-every' },
  ...{ evalBatches: 'eval-batches', saveEvery: 'save-every', keep: 'keep', validation: 'validation' },
  ...{ spike: 'spike', seed: 'seed', ranks: 'nproc', mode: 'mode' },
};

/** Another one makes another training, which cannot go on from what was saved. */
const fixed = ['model', 'context', 'seed', 'validation'] as const satisfies readonly (keyof TrainSettings)[];

/** The settings of a training that begins: what is not given has its default. */
export function beginWith(
  given: GivenSettings & Pick<TrainSettings, 'data' | 'model'>,
  deviceType: 'cpu' | 'cuda',
): TrainSettings {
  const isGpu = deviceType === 'cuda';
  const steps = given.steps ?? 2000;
  const scheduleSteps = given.scheduleSteps ?? steps;
  const learningRate = given.learningRate ?? 3e-4;
  return check({
    ...{ ranks: 1, mode: 'ddp' },
    ...{ context: 256, batch: 32, accumulate: 1, steps, scheduleSteps, learningRate, seed: 0 },
    ...{ minimumLearningRate: learningRate / 10, schedule: 'cosine', clip: 1, weightDecay: 0.1 },
    warmup: Math.min(100, Math.floor(scheduleSteps / 10)),
    ...{ dtype: isGpu ? 'bfloat16' : 'float32', attention: isGpu ? 'flash' : 'plain' },
    execution: 'compiled',
    ...{ evalEvery: 200, evalBatches: 8, saveEvery: 500, keep: 2, validation: 0.1, spike: 2 },
    ...given,
  });
}

/** The settings of a training that goes on, and what of them is new, in words. */
export interface ChangedSettings {
  readonly settings: TrainSettings;
  readonly changes: readonly string[];
}

/**
 * What was saved, with what is given in its place. Throws a UsageError for what would make it another training, and for an end that
 * it has passed.
 */
export function goOnWith(saved: TrainSettings, given: GivenSettings, step: number): ChangedSettings {
  const settings = check({ ...saved, ...given });
  const changed = (Object.keys(flagOfSetting) as (keyof TrainSettings)[]).filter(
    (name) => inWords(settings[name]) !== inWords(saved[name]),
  );
  for (const name of fixed) {
    if (!changed.includes(name)) continue;
    throw new UsageError(
      `--${flagOfSetting[name]} is ${inWords(saved[name])} in the training that --resume names, and ${inWords(settings[name])} would ` +
        'make another one: leave it out, or begin anew with another --out.',
    );
  }
  if (settings.steps <= step) {
    throw new UsageError(
      `The training that --resume names has made ${step} steps; --steps ${settings.steps} adds none: name a larger number.`,
    );
  }
  const changes = changed
    .filter((name) => name !== 'data')
    .map((name) => `--${flagOfSetting[name]} ${inWords(settings[name])} in place of ${inWords(saved[name])}`);
  return { settings, changes };
}

function inWords(value: TrainSettings[keyof TrainSettings]): string {
  return typeof value === 'object' ? value.size : String(value);
}

/** Throws a UsageError for settings that do not fit together. */
function check(settings: TrainSettings): TrainSettings {
  const { batch, accumulate, ranks } = settings;
  if (batch % (ranks * accumulate) !== 0) {
    const ofRanks = ranks > 1 ? ` on all of ${ranks} ranks` : '';
    const times = ranks > 1 ? `--nproc ${ranks} times ` : '';
    throw new UsageError(
      `--batch ${batch} is of a whole step${ofRanks}, and ${times}--accumulate ${accumulate} must divide it into equal parts.`,
    );
  }
  if (settings.mode === 'hybrid' && ranks > 1 && (ranks < 4 || ranks % 2 !== 0))
    throw new UsageError(
      `--mode hybrid shards over each half of the ranks, which want two ranks or more, and --nproc is ${ranks}: take an even number from 4 ` +
        'on, or --mode fsdp.',
    );
  makeSchedule(settings);
  return settings;
}

/** Throws a UsageError where there is no such schedule. */
export function makeSchedule(settings: TrainSettings): Schedule {
  const { schedule: kind, learningRate: maximum, minimumLearningRate: minimum, warmup } = settings;
  const { scheduleSteps: totalSteps } = settings;
  const rising = { kind, maximum, warmupSteps: warmup };
  const options = kind === 'constant' ? rising : { ...rising, minimum, totalSteps };
  try {
    return scheduleOf(options as ScheduleDescription);
  } catch (cause) {
    if (!(cause instanceof RooflineError)) throw cause;
    throw new UsageError(byFlags(cause.message), { cause });
  }
}

const namesOfOptions = {
  ...{ warmupSteps: '--warmup', totalSteps: '--schedule-steps', decaySteps: 'a decay of' },
  ...{ maximum: '--lr', minimum: '--min-lr' },
};

/** The message of a schedule, by the flags that make it. */
function byFlags(message: string): string {
  return Object.entries(namesOfOptions).reduce(
    (text, [name, words]) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), words),
    message.replace(/^\w+: /, ''),
  );
}

/** What becomes of the schedule where a training's end has moved; null where nothing is to be said. */
export function scheduleInWords(settings: TrainSettings): string | null {
  const { schedule, steps, scheduleSteps } = settings;
  if (schedule === 'constant' || steps === scheduleSteps) return null;
  const rate = makeSchedule(settings);
  const at = (step: number) => rate(step).toPrecision(3);
  const whole = scheduleSteps.toLocaleString('en');
  return steps > scheduleSteps
    ? `The ${schedule} schedule stays one of ${whole} steps: from there on the learning rate is ${at(scheduleSteps)}. ` +
        `--schedule-steps ${steps} stretches it to the end.`
    : `The ${schedule} schedule stays one of ${whole} steps: training ends before, at a learning rate of ${at(steps - 1)}. ` +
        `--schedule-steps ${steps} shortens it.`;
}
