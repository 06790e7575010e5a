import { setImmediate } from 'node:timers/promises';
import { Mesh, type ProcessGroup } from '@roofline/collectives';
import type { Schedule } from '@roofline/optim';
import { RooflineError, defaultGenerator, device as openDevice } from '@roofline/tensor-core';
import { type FitStep, type TokenSource, costOf, fit } from '@roofline/transformer';
import { UsageError } from '../errors.ts';
import { Evaluation } from './evaluation.ts';
import { EventFile } from './event-file.ts';
import { LossWatch } from './loss-watch.ts';
import { Pace } from './pace.ts';
import { type Checkpoint, checkpointPath, metadataOf, pruneCheckpoints } from './run-folder.ts';
import { type TrainSettings, makeSchedule, replicasOf } from './settings.ts';
import { Stopping } from './stopping.ts';
import { TrainLog } from './train-log.ts';
import { TrainingParts } from './training-parts.ts';

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
  /** The ranks that train together, of which this process is one; null for this process alone. */
  readonly group: ProcessGroup | null;
  /** FLOP/s that the devices of all ranks reach in products of the dtype. */
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
 * Trains until the last step, or until it is interrupted, and saves. All ranks do so together: rank 0 writes. Throws a DivergenceError where the training goes wrong, and a
 * UsageError for data that do not fit; the last checkpoint is whole in any case.
 */
export async function runTraining(job: TrainingJob): Promise<TrainingOutcome> {
  const { settings, checkpoint, group } = job;
  using mesh = group && (await meshOf(group, settings));
  using run = orWrongUsage(() => new TrainingRun(job, mesh));
  const stopping = new Stopping(job.signal, group);
  const from = checkpoint?.step ?? 0;
  if (checkpoint === null) {
    // Ranks draw other numbers: of the seeds that follow each other.
    defaultGenerator.manualSeed((settings.seed + (group?.rank ?? 0)) % Number.MAX_SAFE_INTEGER);
    await run.save(0);
  } else await orWrongUsage(() => run.parts.load(checkpoint.path));
  for (const step of fit(run.parts.model, { ...run.fitOptions, from, steps: settings.steps })) {
    run.started(step);
    const made = step.step + 1;
    const isOver = made === settings.steps || (await stopping.isAsked(made, run.stepMs));
    if (isDue(made, settings.evalEvery) || made === settings.steps) run.evaluate(made);
    if (isDue(made, settings.saveEvery) || isOver) await run.save(made);
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

/** A rank's shard lies among its neighbours, which one machine may hold. */
function meshOf(group: ProcessGroup, settings: TrainSettings): Promise<Mesh> {
  const replicate = replicasOf(settings);
  const shard = group.size / replicate;
  const axes: Readonly<Record<string, number>> = replicate > 1 ? { replicate, shard } : { shard };
  return Mesh.create(group, axes);
}

function isDue(made: number, every: number): boolean {
  return every > 0 && made % every === 0;
}

/** The parts of a training, and what is written of it. */
class TrainingRun implements Disposable {
  readonly parts: TrainingParts;
  readonly fitOptions: ReturnType<TrainingParts['fitOptions']>;
  readonly #job: TrainingJob;
  readonly #schedule: Schedule;
  readonly #evaluation: Evaluation | null;
  /** What is written of it; null on ranks that write nothing. */
  readonly #written: { readonly log: TrainLog; readonly events: EventFile } | null;
  readonly #watch: LossWatch;
  readonly #pace: Pace;
  readonly #stepFlops: number;
  /** Started, and not read yet. */
  #unread: { readonly step: FitStep; readonly durationMs: number } | null = null;
  #progress: TrainingProgress = { step: 0, loss: NaN, tokensPerSecond: NaN, utilization: null };

  constructor(job: TrainingJob, mesh: Mesh | null) {
    const { settings, checkpoint, folder, source, group } = job;
    const device = openDevice(job.deviceLabel as `cuda:${number}`);
    this.#job = job;
    this.#schedule = makeSchedule(settings);
    this.parts = new TrainingParts(settings, source, device, mesh);
    this.fitOptions = this.parts.fitOptions(this.#schedule);
    this.#evaluation =
      settings.validation > 0 ? new Evaluation(this.parts.model, source, settings, device, group) : null;
    const { batch, context } = settings;
    this.#stepFlops = costOf(this.parts.model.config, { batch, context }).stepFlops;
    this.#watch = new LossWatch({ spike: settings.spike, checksNorm: settings.dtype !== 'float16' });
    const step = checkpoint?.step ?? 0;
    const isWriter = group === null || group.rank === 0;
    this.#written = isWriter
      ? { log: new TrainLog(folder, step), events: new EventFile(folder, step) }
      : null;
    this.#pace = new Pace(performance.now());
  }

  /** A step is under way: what the one before it found is read, so that a GPU has the next one to do meanwhile. */
  started(step: FitStep): void {
    this.#read();
    this.#unread = { step, durationMs: this.#pace.stepped(performance.now()) };
  }

  /** The mean time of the last steps. */
  get stepMs(): number {
    return this.#pace.stepMs;
  }

  evaluate(made: number): void {
    this.#read();
    if (this.#evaluation !== null) {
      const validationLoss = this.#evaluation.run();
      this.#written?.log.write({ step: made, validationLoss });
      this.#written?.events.write(made, { 'loss/validation': validationLoss });
      this.#job.observer.evaluated(made, validationLoss, this.#progress);
    }
    this.#pace.resumed(performance.now());
  }

  /** Nothing is saved of a training that went wrong: all losses so far have been looked at. */
  async save(made: number): Promise<void> {
    this.#read();
    const { settings, folder } = this.#job;
    const place = { step: made, schedule: this.#schedule.description, metadata: metadataOf(settings) };
    await this.parts.save(checkpointPath(folder, made), place);
    if (this.#written) pruneCheckpoints(folder, settings.keep);
    this.#pace.resumed(performance.now());
  }

  #read(): void {
    if (this.#unread === null) return;
    const { step: started, durationMs } = this.#unread;
    this.#unread = null;
    const { step, loss, gradientNorm, learningRate } = started;
    this.#written?.log.write({ step, loss, gradientNorm, learningRate, durationMs });
    this.#watch.see(step, loss, gradientNorm);
    const { settings, peakFlopsPerSecond: peak, observer } = this.#job;
    const seconds = this.#pace.stepMs / 1000;
    this.#progress = {
      ...{ step: step + 1, loss, tokensPerSecond: (settings.batch * settings.context) / seconds },
      utilization: peak === null ? null : this.#stepFlops / seconds / peak,
    };
    const { tokensPerSecond, utilization } = this.#progress;
    this.#written?.events.write(step, {
      ...{ 'loss/train': loss, 'gradient norm': gradientNorm, 'learning rate': learningRate },
      ...{ 'tokens per second': tokensPerSecond, utilization },
    });
    observer.progressed(this.#progress);
  }

  [Symbol.dispose](): void {
    this.#evaluation?.[Symbol.dispose]();
    this.parts[Symbol.dispose]();
    this.#written?.log[Symbol.dispose]();
    this.#written?.events[Symbol.dispose]();
  }
}

/** Of data, sizes and settings that do not go together. */
function orWrongUsage<T>(make: () => T): T {
  const refused = (cause: unknown): never => {
    if (!(cause instanceof RooflineError) || !usageCodes.has(cause.code)) throw cause;
    throw new UsageError(cause.message, { cause });
  };
  try {
    const made = make();
    return made instanceof Promise ? (made.catch(refused) as T) : made;
  } catch (cause) {
    return refused(cause);
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
