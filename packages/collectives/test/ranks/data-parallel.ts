import { deepStrictEqual, match, ok, throws } from 'node:assert/strict';
import {
  type CompiledFunction,
  type Tensor,
  add,
  autocast,
  compile,
  device as openDevice,
  mean,
  mul,
  ones,
  scope,
} from '@roofline/tensor-core';
import { AdamW, GradientScaler, SGD, clipGradientNorm } from '@roofline/optim';
import { Module, TransformerLM, languageModelLoss } from '@roofline/transformer';
import {
  CollectiveError,
  DistributedDataParallel,
  type DistributedDataParallelOptions,
  ShardedOptimizer,
  initProcessGroup,
} from '@roofline/collectives';
import { openEmulatedGpu } from '../support/emulated-gpu.ts';
import { rowsOf, smallModel } from './joined-batch.ts';

// Training on all ranks against training on one, which each rank does by itself, with the joined batch: by Gloo on the
// CPU, by NCCL on GPUs, or by its stand-in on emulated ones. Further arguments name scenarios; all if there are none.

const [backend = 'gloo', ...chosen] = process.argv.slice(2);
const emulated = backend === 'emulated' ? openEmulatedGpu() : null;
const group = await initProcessGroup({
  backend: backend === 'gloo' ? 'gloo' : 'nccl',
  ...(emulated && { device: emulated.device, timeoutMs: 300_000 }),
});
const { rank, size } = group;
const device = group.device ?? openDevice('cpu');
const modes = ['naive', 'flat', 'overlap'] as const;
const steps = 3;
const config = { ...smallModel, layers: 1 };

/** A language model with a parameter that not every loss uses, and a frozen tensor as a buffer. */
class Model extends Module<[], Tensor> {
  readonly languageModel: TransformerLM;
  readonly extra: Tensor;
  readonly offset: Tensor;

  constructor(seed: number) {
    super();
    this.languageModel = new TransformerLM(config, { seed, device });
    this.extra = ones([3], { device }).requiresGrad_();
    this.offset = mul(ones([3], { device }), seed);
  }

  protected compute(): Tensor {
    return mean(mul(add(this.extra, this.offset), this.extra));
  }
}

/** Rows of the joined batch: of one rank, or of all for null. */
function lossOf(model: Model, step: number, of: number | null, usesExtra: boolean): Tensor {
  const { ids, targets } = rowsOf(step, of, { size, device });
  const loss = languageModelLoss(model.languageModel, ids, targets);
  return usesExtra ? add(loss, model.forward()) : loss;
}

interface Stepping {
  parameters(): Iterable<Tensor>;
  step(): void;
  stepUnless(skip: Tensor): void;
  zeroGrad(): void;
}

interface Scenario {
  readonly options?: DistributedDataParallelOptions;
  /** Backward passes in a step. */
  readonly passes?: number;
  /** Whether a rank's loss uses the extra parameter. */
  usesExtra?(of: number, step: number): boolean;
  /** The loss as it is differentiated; its ops run inside. */
  readonly around?: (run: () => void) => void;
  optimizer?(model: Model, isParallel: boolean): Stepping;
  /** A step from the gradients. */
  finish?(optimizer: Stepping, model: Model): void;
  scale?(loss: Tensor, step: number, of: number | null): Tensor;
  /** Of the compared values, relative to each tensor's largest. */
  readonly tolerance?: number;
}

// A hundred or so float32 products are added in another order, in each of several layers and steps.
const float32Tolerance = 1000 * 2 ** -24;
// Each rank's gradients are rounded to bfloat16 or float16 before they are averaged.
const bfloat16Tolerance = 8 * 2 ** -8;
const float16Tolerance = 8 * 2 ** -11;

const sgd = (model: Model): Stepping => new SGD(model.parameters(), { learningRate: 0.1, momentum: 0.9 });
/** An eps that keeps a gradient of almost nothing from a whole step in one direction or the other. */
const adamwOptions = { learningRate: 0.01, eps: 0.01, weightDecay: 0.1 };
const adamwGroups = (model: Model) => [
  { parameters: [model.extra], learningRate: 0.5, weightDecay: 0 },
  { parameters: model.languageModel.parameters() },
];

/** AdamW, split over the ranks where there are several. */
const shardedAdamW = (model: Model, isParallel: boolean): Stepping =>
  isParallel
    ? new ShardedOptimizer(adamwGroups(model), AdamW, group, adamwOptions, { bucketBytes: 1000 })
    : new AdamW(adamwGroups(model), adamwOptions);

function scaled(
  autocastDType: 'float16',
  makeOptimizer: Scenario['optimizer'] = sgd,
  clips = false,
): Scenario {
  let scaler: GradientScaler;
  return {
    around: (run) => autocast(autocastDType, run),
    optimizer(model, isParallel) {
      scaler = new GradientScaler({ initialScale: 1024 });
      return makeOptimizer(model, isParallel);
    },
    // In the second step one rank's loss overflows; so does the joined one.
    scale: (loss, step, of) =>
      mul(scaler.scale(loss), step === 1 && (of === null || of === size - 1) ? Infinity : 1),
    finish(optimizer, model) {
      if (clips) {
        scaler.unscale(optimizer);
        clipGradientNorm(model.parameters(), 0.05);
      }
      scaler.step(optimizer);
      scaler.update();
      ok([1024, 512].includes(scaler.currentScale));
    },
    tolerance: float16Tolerance,
  };
}

/** What follows the backward pass, compiled: from its third call on without its JavaScript. */
function compiledStep(): Scenario {
  let step: CompiledFunction<() => void>;
  return {
    optimizer(model) {
      const optimizer = new AdamW(adamwGroups(model), adamwOptions);
      step = compile(() => {
        clipGradientNorm(model.parameters(), 0.05);
        optimizer.step();
      });
      return optimizer;
    },
    finish() {
      step();
      ok(step.cache.misses <= 2);
    },
  };
}

const scenarios: Readonly<Record<string, Scenario>> = {
  plain: {},
  AdamW: { optimizer: (model) => new AdamW(adamwGroups(model), adamwOptions) },
  accumulation: { passes: 3 },
  unused: {
    options: { findUnusedParameters: true },
    // By all ranks, by all but one, by none.
    usesExtra: (of, step) => step === 0 || (step === 1 && of !== 0),
    optimizer: (model) => new AdamW(adamwGroups(model), adamwOptions),
  },
  'unused in the last of several passes': {
    passes: 2,
    usesExtra: (_, pass) => pass % 2 === 0,
  },
  autocast: { around: (run) => autocast('bfloat16', run), tolerance: bfloat16Tolerance },
  scaler: scaled('float16'),
  clipping: {
    finish(optimizer, model) {
      ok(clipGradientNorm(model.parameters(), 0.05).item() > 0.05);
      optimizer.step();
    },
  },
  'clipping and AdamW, compiled': compiledStep(),
  'sharded AdamW': { optimizer: shardedAdamW },
  'accumulation, scaler, clipping and sharded AdamW': { passes: 2, ...scaled('float16', shardedAdamW, true) },
  'sharded SGD, clipped': {
    optimizer: (model, isParallel) => {
      const options = { learningRate: 0.1, momentum: 0.9, nesterov: true };
      return isParallel
        ? new ShardedOptimizer(model.parameters(), SGD, group, options)
        : new SGD(model.parameters(), options);
    },
    finish(optimizer, model) {
      clipGradientNorm(model.parameters(), 0.05);
      optimizer.step();
    },
  },
};

/** The parameters after training, as plain numbers by name. */
function train(scenario: Scenario, mode: (typeof modes)[number] | null): Map<string, number[]> {
  const isParallel = mode !== null;
  const { passes = 1, usesExtra = () => true, around = (run) => run(), scale = (loss) => loss } = scenario;
  const { optimizer: makeOptimizer = sgd, finish = (optimizer) => optimizer.step() } = scenario;
  // Ranks begin with models of their own.
  const model = new Model(isParallel ? rank + 1 : 1);
  const parallel = isParallel
    ? new DistributedDataParallel(model, group, { mode, bucketBytes: 3000, ...scenario.options })
    : null;
  const optimizer = makeOptimizer(model, isParallel);
  for (let step = 0; step < steps; step++) {
    for (let pass = 0; pass < passes; pass++) {
      const index = step * passes + pass;
      const run = () =>
        scope(() => {
          const parts = isParallel
            ? [rank]
            : group.ranks.filter((of) => usesExtra(of, index) !== usesExtra(0, index));
          let loss: Tensor;
          if (isParallel || parts.length === 0)
            loss = scale(
              lossOf(model, index, isParallel ? rank : null, usesExtra(rank, index)),
              step,
              isParallel ? rank : null,
            );
          else {
            // Where ranks do not use the same, the joined loss is the mean of theirs.
            const losses = group.ranks.map((of) => lossOf(model, index, of, usesExtra(of, index)));
            loss = mul(losses.reduce(add), 1 / size);
          }
          mul(loss, 1 / passes).backward();
        });
      const isLast = pass === passes - 1;
      around(() => (parallel && !isLast ? parallel.noSync(run) : run()));
    }
    finish(optimizer, model);
    optimizer.zeroGrad();
  }
  const values = new Map([...model.namedParameters()].map(([name, x]) => [name, x.toFlatArray()]));
  parallel?.dispose();
  (optimizer as unknown as Disposable)[Symbol.dispose]();
  model.dispose();
  return values;
}

function expectClose(
  what: string,
  actual: Map<string, number[]>,
  expected: Map<string, number[]>,
  tolerance: number,
): void {
  deepStrictEqual([...actual.keys()], [...expected.keys()]);
  for (const [name, values] of expected) {
    const scale = Math.max(...values.map(Math.abs), 1e-3);
    const worst = Math.max(...values.map((value, i) => Math.abs(value - actual.get(name)![i]!)));
    ok(worst <= tolerance * scale, `${what}: ${name} differs by ${worst}, its largest value is ${scale}`);
  }
}

/** Whether all ranks have the same, to the last bit. */
async function expectSame(what: string, values: Map<string, number[]>): Promise<void> {
  for (const others of await group.allGatherObject(values)) deepStrictEqual(others, values, what);
}

for (const [name, scenario] of Object.entries(scenarios)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const expected = train(scenario, null);
  const results = modes.map((mode) => train(scenario, mode));
  for (const [i, mode] of modes.entries()) {
    const what = `${name}, ${mode}`;
    await expectSame(what, results[i]!);
    expectClose(what, results[i]!, expected, scenario.tolerance ?? float32Tolerance);
    // Two addends have one sum. On a GPU the products before it may be others' algorithms.
    if (size === 2 && backend === 'gloo')
      deepStrictEqual(results[i], results[0], `${what} differs from naive by a bit`);
  }
}

/** Runs a backward pass of the plain loss; whether the extra parameter takes part is up to the rank. */
function pass(model: Model, usesExtra: boolean): void {
  scope(() => lossOf(model, 0, rank, usesExtra).backward());
}

// Unused parameters are named: by all ranks, or by the one on which they are.
for (const mode of modes) {
  const model = new Model(1);
  const parallel = new DistributedDataParallel(model, group, { mode });
  throws(
    () => pass(model, false),
    /rank \d the backward pass brought no gradient to extra; use them in the loss/,
  );
  deepStrictEqual(model.extra.grad, null);
  if (rank === 1) throws(() => pass(model, false), { code: 'UNUSED_PARAMETERS' });
  else pass(model, true);
  for (const parameter of model.parameters()) parameter.grad = null;
  pass(model, true);
  parallel.dispose();
  // No collective any more: ranks may do as they like.
  if (rank === 0) pass(model, true);
}

// Models and options that differ are named on all ranks.
function refusal(make: () => unknown): CollectiveError {
  try {
    make();
  } catch (error) {
    if (error instanceof CollectiveError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

if (size > 1) {
  const odd = new Model(1);
  if (rank === size - 1) (odd as { extra: Tensor }).extra = ones([4], { device }).requiresGrad_();
  const differing = refusal(() => new DistributedDataParallel(odd, group));
  deepStrictEqual(differing.peers, rank === size - 1 ? group.ranks.slice(0, -1) : [size - 1]);
  match(differing.message, /parameters, from .*; build the same model on all ranks/);
  match(
    refusal(() => new DistributedDataParallel(new Model(1), group, { bucketBytes: 100 + rank })).message,
    /has the options .*"bucketBytes":10\d.*; give all ranks the same/,
  );
  const learningRate = 0.1 + rank;
  match(
    refusal(() => new ShardedOptimizer(new Model(1).parameters(), SGD, group, { learningRate })).message,
    /^ShardedOptimizer: rank \d has the options .*learningRate/,
  );
  const bucketBytes = 100 + rank;
  match(
    refusal(() => new ShardedOptimizer(new Model(1).parameters(), SGD, group, {}, { bucketBytes })).message,
    /^ShardedOptimizer: rank \d has the options .*bucketBytes/,
  );
}

deepStrictEqual(emulated?.nccl.faults() ?? '', '');
console.log('all right');
