import { setImmediate } from 'node:timers/promises';
import { AdamW, GradientScaler, type Schedule, clipGradientNorm } from '@roofline/optim';
import {
  type Device,
  RooflineError,
  type Tensor,
  defaultGenerator,
  device as openDevice,
} from '@roofline/tensor-core';
import {
  type FitOptions,
  type FitStep,
  TokenLoader,
  type TokenSource,
  TransformerLM,
  costOf,
  fit,
  loadTraining,
  parameterGroups,
  saveTraining,
} from '@roofline/transformer';
import { attentionFunction } from '../attention/attention-function.ts';
import { UsageError } from '../errors.ts';
import { Evaluation } from './evaluation.ts';
import { EventFile } from './event-file.ts';
import { LossWatch } from './loss-watch.ts';
import { Pace } from './pace.ts';
import { type Checkpoint, checkpointPath, metadataOf, pruneCheckpoints } from './run-folder.ts';
import { type TrainSettings, makeSchedule } from './settings.ts';
import { TrainLog } from './train-log.ts';

/** How a training is going. */
export interface TrainingProgress {
  /** Steps made. */
  readonly step: number;
  readonly loss: number;
  readonly tokensPerSecond: number;
  /** FLOPs of the model's products over those that the device's ceiling would allow in the time; null without a ceiling. */
  readonly utilization: number | null;
}

/** Looks on. */
export interface TrainingObserver {
  progressed(progress: TrainingProgress): void;
  evaluated(step: number, validationLoss: number, progress: TrainingProgress): void;
}

export interface TrainingJob {
  readonly settings: TrainSettings;
  readonly folder: string;
  /** What it goes on from; null for a training that begins. */
  readonly checkpoint: Checkpoint | null;
  readonly source: TokenSource;
  readonly deviceLabel: string;
  /** FLOP/s that the device reaches in products of the dtype. */
  readonly peakFlopsPerSecond: number | null;
  readonly signal: AbortSignal;
  readonly observer: TrainingObserver;
}

/** How a training ended. */
export interface TrainingOutcome {
  readonly isFinished: boolean;
  /** Steps made. */
  readonly step: number;
  /** The newest, of that step. */
  readonly checkpoint: string;
}

/**
 * Trains until the last step, or until it is interrupted, and saves. Throws a DivergenceError where the training goes wrong, and a
 * UsageError for data that do not fit; the last checkpoint is whole in any case.
 */
export async function runTraining(job: TrainingJob): Promise<TrainingOutcome> {
  const { settings, checkpoint, signal } = job;
  using run = orWrongUsage(() => new TrainingRun(job));
  const from = checkpoint?.step ?? 0;
  if (checkpoint === null) run.save(0);
  for (const step of fit(run.parts.model, { ...run.fitOptions, from, steps: settings.steps })) {
    run.started(step);
    const made = step.step + 1;
    const isOver = made === settings.steps || signal.aborted;
    if (isDue(made, settings.evalEvery) || made === settings.steps) run.evaluate(made);
    if (isDue(made, settings.saveEvery) || isOver) run.save(made);
    if (isOver)
      return {
        ...{ isFinished: made === settings.steps, step: made },
        checkpoint: checkpointPath(job.folder, made),
      };
    // Signals arrive between steps.
    await setImmediate();
  }
  throw new Error('The last step ends the loop.');
}

function isDue(made: number, every: number): boolean {
  return every > 0 && made % every === 0;
}

/** The parts of a training, and what is written of it. */
class TrainingRun implements Disposable {
  readonly parts: {
    readonly model: TransformerLM;
    readonly optimizer: AdamW;
    readonly scaler: GradientScaler;
    readonly data: TokenLoader;
  };
  readonly fitOptions: Omit<FitOptions, 'from' | 'steps'>;
  readonly #job: TrainingJob;
  readonly #schedule: Schedule;
  readonly #evaluation: Evaluation | null;
  readonly #log: TrainLog;
  readonly #events: EventFile;
  readonly #watch: LossWatch;
  readonly #pace: Pace;
  readonly #stepFlops: number;
  /** Started, and not read yet. */
  #unread: { readonly step: FitStep; readonly durationMs: number } | null = null;
  #progress: TrainingProgress = { step: 0, loss: NaN, tokensPerSecond: NaN, utilization: null };

  constructor(job: TrainingJob) {
    const { settings, checkpoint, folder, source } = job;
    const device = openDevice(job.deviceLabel as `cuda:${number}`);
    this.#job = job;
    this.#schedule = makeSchedule(settings);
    this.parts = makeParts(settings, source, device);
    if (checkpoint === null) defaultGenerator.manualSeed(settings.seed);
    else loadTraining(checkpoint.path, this.parts);
    this.fitOptions = fitOptionsOf(settings, this.parts, this.#schedule);
    this.#evaluation =
      settings.validation > 0 ? new Evaluation(this.parts.model, source, settings, device) : null;
    const { batch, context } = settings;
    this.#stepFlops = costOf(this.parts.model.config, { batch, context }).stepFlops;
    this.#watch = new LossWatch({ spike: settings.spike, checksNorm: settings.dtype !== 'float16' });
    this.#log = new TrainLog(folder, checkpoint?.step ?? 0);
    this.#events = new EventFile(folder, checkpoint?.step ?? 0);
    this.#pace = new Pace(performance.now());
  }

  /** A step is under way: what the one before it found is read, so that a GPU has the next one to do meanwhile. */
  started(step: FitStep): void {
    this.#read();
    this.#unread = { step, durationMs: this.#pace.stepped(performance.now()) };
  }

  evaluate(made: number): void {
    this.#read();
    if (this.#evaluation !== null) {
      const validationLoss = this.#evaluation.run();
      this.#log.write({ step: made, validationLoss });
      this.#events.write(made, { 'loss/validation': validationLoss });
      this.#job.observer.evaluated(made, validationLoss, this.#progress);
    }
    this.#pace.resumed(performance.now());
  }

  /** Nothing is saved of a training that went wrong: all losses so far have been looked at. */
  save(made: number): void {
    this.#read();
    const { settings, folder } = this.#job;
    const place = { step: made, schedule: this.#schedule.description, metadata: metadataOf(settings) };
    saveTraining(checkpointPath(folder, made), this.parts, place);
    pruneCheckpoints(folder, settings.keep);
    this.#pace.resumed(performance.now());
  }

  #read(): void {
    if (this.#unread === null) return;
    const { step: started, durationMs } = this.#unread;
    this.#unread = null;
    const { step, loss, gradientNorm, learningRate } = started;
    this.#log.write({ step, loss, gradientNorm, learningRate, durationMs });
    this.#watch.see(step, loss, gradientNorm);
    const { settings, peakFlopsPerSecond: peak, observer } = this.#job;
    const seconds = this.#pace.stepMs / 1000;
    this.#progress = {
      ...{ step: step + 1, loss, tokensPerSecond: (settings.batch * settings.context) / seconds },
      utilization: peak === null ? null : this.#stepFlops / seconds / peak,
    };
    const { tokensPerSecond, utilization } = this.#progress;
    this.#events.write(step, {
      ...{ 'loss/train': loss, 'gradient norm': gradientNorm, 'learning rate': learningRate },
      ...{ 'tokens per second': tokensPerSecond, utilization },
    });
    observer.progressed(this.#progress);
  }

  [Symbol.dispose](): void {
    this.#evaluation?.[Symbol.dispose]();
    for (const part of [this.parts.data, this.parts.scaler, this.parts.optimizer, this.parts.model])
      part.dispose();
    for (const file of [this.#log, this.#events]) file[Symbol.dispose]();
  }
}

function makeParts(settings: TrainSettings, source: TokenSource, device: Device): TrainingRun['parts'] {
  const { model, context, seed, weightDecay, dtype, batch, validation } = settings;
  const attention = attentionFunction(settings.attention);
  const config = { ...model.shape, contextLength: context };
  const lm = new TransformerLM(config, { device, seed, attention });
  const data = { batch, contextLength: context, seed, validationShare: validation, device };
  return {
    model: lm,
    optimizer: new AdamW(parameterGroups(lm, { weightDecay }), { betas: [0.9, 0.95] }),
    scaler: new GradientScaler({ enabled: dtype === 'float16' }),
    data: new TokenLoader(source, data),
  };
}

function fitOptionsOf(
  { accumulate, dtype, execution, clip }: TrainSettings,
  { data, optimizer, scaler }: TrainingRun['parts'],
  schedule: Schedule,
): TrainingRun['fitOptions'] {
  return {
    ...{ data, optimizer, scaler, schedule, accumulate, dtype },
    // Without a limit the norm is still known, by which a training that goes wrong is told.
    clip: (parameters: Iterable<Tensor>) => clipGradientNorm(parameters, clip || Infinity),
    compile: execution !== 'eager' && { autotune: execution === 'autotuned' },
  };
}

/** Of data, sizes and settings that do not go together. */
function orWrongUsage<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    if (!(cause instanceof RooflineError) || !usageCodes.has(cause.code)) throw cause;
    throw new UsageError(cause.message, { cause });
  }
}

const usageCodes = new Set([
  'RANGE',
  'OPTION',
  'STATE',
  'MODEL_CONFIG',
  'TRAINING_FILE',
  'SAFETENSORS',
  'OPTIMIZER_STATE',
]);
