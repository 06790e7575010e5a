import {
  type CompileOptions,
  RooflineError,
  type Tensor,
  add,
  autocast,
  checkCount,
  checkFunction,
  checkObject,
  checkOptions,
  compile,
  describeValue,
  div,
  keep,
  range,
  requireTensor,
  scope,
  slice,
} from '@roofline/tensor-core';
import type { TokenWindows } from '../data/token-windows.ts';
import { type AnyModule, requireModule } from '../module/module.ts';
import type { TransformerLM } from '../model/transformer-lm.ts';
import { languageModelLoss } from './loss.ts';

/** Where batches come from: a `TokenLoader`, or an object of your own. */
export interface TrainingData {
  /** The next batch, on the model's device. */
  next(): TokenWindows;
  /** Called when a step has been started: the batch after it can be read while a GPU is at work. */
  prefetch?(): void;
}

/** What makes the steps: an optimizer of @roofline/optim. */
export interface TrainingOptimizer {
  learningRate: number;
  parameters(): Iterable<Tensor>;
  step(): void;
  stepUnless(skip: Tensor): void;
  zeroGrad(): void;
}

/** A GradientScaler of @roofline/optim, which float16 needs. */
export interface TrainingScaler {
  scale(loss: Tensor): Tensor;
  unscale(optimizer: TrainingOptimizer): void;
  step(optimizer: TrainingOptimizer): void;
  update(): void;
}

/** Ranks that train a model together: its `DistributedDataParallel`, or what `fullyShard` gave, of @roofline/collectives. */
export interface ParallelTraining {
  readonly group: {
    allReduce(x: Tensor, options: { readonly op: 'average' }): { wait(): void };
  };
  /** Runs backward passes whose gradients stay on this rank, until one outside of it. */
  noSync?<T>(fn: () => T): T;
}

/** Options of `fit`. */
export interface FitOptions {
  readonly data: TrainingData;
  readonly optimizer: TrainingOptimizer;
  /** The step at which training ends: with `from` 0 so many are made. */
  readonly steps: number;
  /** The first step, as `loadTraining` gives it. Default 0. */
  readonly from?: number;
  /** The learning rate of each step, as of `cosineSchedule`. Default: the optimizer's own. */
  readonly schedule?: (step: number) => number;
  /** In so many parts each batch goes through the model, of as many rows; their gradients are added. Default 1. */
  readonly accumulate?: number;
  /** The dtype of products, by `autocast`. Default `float32`. */
  readonly dtype?: FitDType;
  readonly scaler?: TrainingScaler;
  /** Called with the parameters before each update, as `(parameters) => clipGradientNorm(parameters, 1)`: gives the gradients' norm. */
  readonly clip?: (parameters: Iterable<Tensor>) => Tensor;
  /** The loss of a part of a batch, a scalar. Default `languageModelLoss`. */
  readonly loss?: (ids: Tensor, targets: Tensor) => Tensor;
  /** Runs each step as one program: true, or the options of `compile`. Default false. */
  readonly compile?: boolean | CompileOptions;
  /**
   * The ranks that make each step together, all of them by a call of their own: `data` gives this rank's rows, and losses are the mean
   * over the ranks. Default: this process alone.
   */
  readonly parallel?: ParallelTraining;
}

/** The dtypes that products of a training may have. */
export const fitDTypes = ['float32', 'bfloat16', 'float16'] as const;
/** One of them. */
export type FitDType = (typeof fitDTypes)[number];

/** A step that `fit` has started. */
export interface FitStep {
  /** Its number, from 0 on. */
  readonly step: number;
  readonly learningRate: number;
  /**
   * The mean loss of its batch, of all ranks' rows, in nats, before the update. Reading it waits for the device; read that of the step before, and a GPU is
   * never without work. It can be read until two further steps have been started.
   */
  readonly loss: number;
  /** The norm of the gradients that `clip` gave; null without it. Waits too. */
  readonly gradientNorm: number | null;
}

const optionNames = [
  ...(['data', 'optimizer', 'steps', 'from', 'schedule', 'accumulate', 'dtype', 'scaler', 'clip'] as const),
  ...(['loss', 'compile', 'parallel'] as const),
];

/**
 * Trains a model, and gives each step when it has been started: whatever else a training does, as logging, evaluating, saving or
 * stopping early, is the body of a loop over it. Between two steps the parts may be saved by `saveTraining`. Throws a RooflineError for
 * options that do not exist (code OPTION) or are out of range (code RANGE), before the first step, and what the parts throw.
 *
 * @example
 * ```ts
 * import { AdamW, clipGradientNorm, cosineSchedule } from '@roofline/optim';
 * import { TokenLoader, TransformerLM, byteTokens, fit, presetConfig, saveTraining } from '@roofline/transformer';
 *
 * const model = new TransformerLM(presetConfig('tiny', { vocabularySize: 256, contextLength: 16 }));
 * const optimizer = new AdamW(model.parameters());
 * const data = new TokenLoader(byteTokens('The roof is what the hardware allows.'), { batch: 4, contextLength: 16 });
 * const schedule = cosineSchedule({ maximum: 3e-3, totalSteps: 3 });
 * const options = { data, optimizer, schedule, steps: 3 };
 *
 * for (const { step, loss } of fit(model, { ...options, clip: (parameters) => clipGradientNorm(parameters, 1) }))
 *   console.log(step, loss);
 * saveTraining('training.safetensors', { model, optimizer, data }, { step: 3, schedule: schedule.description });
 * ```
 */
export function fit(model: AnyModule, options: FitOptions): Generator<FitStep, void> {
  requireModule('fit', model);
  check(options);
  return train(model, options);
}

function* train(model: AnyModule, options: FitOptions): Generator<FitStep, void> {
  const { data, optimizer, steps, from = 0, schedule, compile: compilation = false } = options;
  const eager = (ids: Tensor, targets: Tensor) => makeStep(model, options, ids, targets);
  const compiled = compilation === false ? null : compile(eager, compilation === true ? {} : compilation);
  const readable: StartedStep[] = [];
  try {
    for (let step = from; step < steps; step++) {
      if (schedule) optimizer.learningRate = schedule(step);
      const results = scope(() => {
        const { ids, targets } = data.next();
        const made = (compiled ?? eager)(ids, targets);
        for (const tensor of made) keep(tensor);
        return made;
      });
      data.prefetch?.();
      readable.push(new StartedStep(step, optimizer.learningRate, results));
      if (readable.length > 2) readable.shift()!.dispose();
      yield readable.at(-1)!;
    }
  } finally {
    for (const step of readable) step.settle();
    compiled?.dispose();
  }
}

/** One update, whole: the loss, and the gradients' norm where they are clipped. */
function makeStep(model: AnyModule, options: FitOptions, ids: Tensor, targets: Tensor): Tensor[] {
  const { optimizer, accumulate = 1, dtype = 'float32', scaler, clip, parallel } = options;
  const lossOf = options.loss ?? ((...batch) => languageModelLoss(model as TransformerLM, ...batch));
  const rows = rowsOfPart(ids, accumulate);
  let total: Tensor | null = null;
  for (let part = 0; part < accumulate; part++) {
    const [partIds, partTargets] = [ids, targets].map((x) =>
      accumulate === 1 ? x : slice(x, 0, part * rows, (part + 1) * rows),
    ) as [Tensor, Tensor];
    const forward = () => lossOf(partIds, partTargets);
    const mean = dtype === 'float32' ? forward() : autocast(dtype, forward);
    requireTensor('fit: the loss', mean);
    const loss = accumulate === 1 ? mean : div(mean, accumulate);
    const backward = () => (scaler?.scale(loss) ?? loss).backward();
    // The last part's pass brings the sum of all to the other ranks.
    if (part < accumulate - 1 && parallel?.noSync) parallel.noSync(backward);
    else backward();
    total = total === null ? loss.detach() : add(total, loss.detach());
  }
  const averaging = parallel?.group.allReduce(total!, { op: 'average' });
  scaler?.unscale(optimizer);
  const norm = clip && range('clip', () => clip(optimizer.parameters()));
  if (scaler) {
    scaler.step(optimizer);
    scaler.update();
  } else optimizer.step();
  optimizer.zeroGrad();
  averaging?.wait();
  return norm ? [total!, norm] : [total!];
}

function rowsOfPart(ids: Tensor, accumulate: number): number {
  const rows = ids.shape[0]! / accumulate;
  if (Number.isInteger(rows)) return rows;
  throw new RooflineError(
    'RANGE',
    `fit: a batch of ${ids.shape[0]} rows cannot be divided into ${accumulate} parts; accumulate must divide it.`,
  );
}

class StartedStep implements FitStep {
  readonly step: number;
  readonly learningRate: number;
  readonly #tensors: readonly Tensor[];
  #values: readonly number[] | null = null;

  constructor(step: number, learningRate: number, tensors: readonly Tensor[]) {
    this.step = step;
    this.learningRate = learningRate;
    this.#tensors = tensors;
  }

  get loss(): number {
    return this.#read()[0]!;
  }

  get gradientNorm(): number | null {
    return this.#read()[1] ?? null;
  }

  #read(): readonly number[] {
    return (this.#values ??= this.#tensors.map((tensor) => tensor.item()));
  }

  /** Keeps the values for a caller who reads them after the last step. */
  settle(): void {
    this.#read();
    this.dispose();
  }

  dispose(): void {
    for (const tensor of this.#tensors) tensor.dispose();
  }
}

function check(options: FitOptions): void {
  checkOptions('fit', options, optionNames);
  const { data, optimizer, steps, from = 0, accumulate = 1, dtype = 'float32' } = options;
  checkObject('fit', 'data', data);
  checkFunction('fit', 'next of data', data.next);
  checkObject('fit', 'optimizer', optimizer);
  for (const method of ['parameters', 'step', 'zeroGrad'] as const)
    checkFunction('fit', `${method} of the optimizer`, optimizer[method]);
  checkCount('fit', 'from', from);
  checkCount('fit', 'steps', steps);
  if (steps < from)
    throw new RooflineError('RANGE', `fit: steps ${steps} are where training ends, and from is ${from}.`);
  checkCount('fit', 'accumulate', accumulate, 1);
  if (!fitDTypes.includes(dtype)) {
    throw new RooflineError(
      'OPTION',
      `fit: dtype must be one of ${fitDTypes.join(', ')}, not ${describeValue(dtype)}.`,
    );
  }
  for (const name of ['schedule', 'clip', 'loss'] as const)
    if (options[name] !== undefined) checkFunction('fit', name, options[name]);
  const { compile: compilation = false, scaler, parallel } = options;
  if (typeof compilation !== 'boolean') checkObject('fit', 'compile', compilation);
  if (parallel !== undefined) {
    checkObject('fit', 'parallel', parallel);
    checkObject('fit', 'group of parallel', parallel.group);
    checkFunction('fit', "allReduce of parallel's group", parallel.group.allReduce);
  }
  if (scaler === undefined) return;
  checkObject('fit', 'scaler', scaler);
  for (const method of ['scale', 'unscale', 'step', 'update'] as const)
    checkFunction('fit', `${method} of the scaler`, scaler[method]);
}
