import { deepStrictEqual, ok, throws } from 'node:assert/strict';
import {
  type Tensor,
  compile,
  full,
  fromTypedArray,
  keep,
  mul,
  scope,
  sum,
  toDevice,
} from '@roofline/tensor-core';
import { AdamW, type OptimizerState, SGD } from '@roofline/optim';
import { ShardedOptimizer } from '@roofline/collectives';
import { groupOf, place } from './group-of.ts';

// Steps of a ShardedOptimizer in compiled functions, next to those of AdamW on one rank: all ranks record a step again in the same
// one, whichever parameters they update.

const { group, device, nccl } = await groupOf();
const steps = 8;
const sizes = [7, 3, 15, 1, 33];

interface Hyperparameters {
  learningRate: number;
  weightDecay: number;
  betas: readonly [number, number];
  momentum: number;
}
interface Optimizer {
  readonly groups: readonly Hyperparameters[];
  learningRate: number;
  step(): void;
  stepUnless(skip: Tensor): void;
  zeroGrad(): void;
  dispose(): void;
}

interface Scenario {
  /** How many of the parameters there are. Default: all. */
  readonly count?: number;
  /** Whether a step brings a gradient to parameter `i`. */
  isUsed?(i: number, step: number): boolean;
  /** Whether a step is one that may be skipped. */
  maySkip?(step: number): boolean;
  before?(optimizer: Optimizer, step: number): void;
  readonly isSgd?: boolean;
  /** The step before which the state is saved and loaded. */
  readonly reloadsAt?: number;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'a learning rate for each step': { before: (it, step) => (it.learningRate = 0.1 / (step + 1)) },
  'hyperparameters of a group': {
    before({ groups: [first, second] }, step) {
      second!.learningRate = 0.1 / (step + 1);
      if (step === 4) [first!.betas, second!.weightDecay] = [[0.5, 0.6], 0.5];
    },
  },
  'fewer parameters than ranks': { count: 1, before: ({ groups: [first] }) => (first!.weightDecay /= 2) },
  'gradients of one parameter': { isUsed: (i) => i === 4 },
  'gradients of some parameters later': { isUsed: (i, step) => i % 2 === 0 || step > 3 },
  'gradients of others in each step': { isUsed: (i, step) => (i + step) % 2 === 0 },
  'steps that may be skipped later': { count: 1, maySkip: (step) => step > 2 },
  'steps of both kinds': { count: 1, maySkip: (step) => step % 2 === 1 },
  'a state that is loaded': { count: 1, reloadsAt: 4 },
  'a momentum that begins': {
    count: 1,
    isSgd: true,
    before({ groups: [first] }, step) {
      if (step === 3) first!.momentum = 0.5;
    },
  },
};

const on = (values: readonly number[]) =>
  toDevice(fromTypedArray(Float32Array.from(values), [values.length]), device);
const inputOf = (step: number, i: number) =>
  on(Array.from({ length: sizes[i]! }, (_, j) => Math.sin(1.7 * step + i + j)));

/** A parameter's values after each step. */
async function train(
  scenario: Scenario,
  optimizerOf: (groups: { parameters: Tensor[] }[]) => Optimizer,
  isCompiled: boolean,
): Promise<{ values: number[][]; misses: number }> {
  const { count = sizes.length, isUsed = () => true, maySkip = () => false, before, reloadsAt } = scenario;
  const parameters = sizes
    .slice(0, count)
    .map((size) => keep(toDevice(full([size], 2), device)).requiresGrad_());
  const parts = [parameters.slice(0, 2), parameters.slice(2)].filter(({ length }) => length > 0);
  const optimizer = optimizerOf(parts.map((each) => ({ parameters: each })));
  const functionOf =
    (used: readonly number[], skips: boolean) =>
    (skip: Tensor, ...inputs: Tensor[]) => {
      for (const i of used) sum(mul(mul(parameters[i]!, parameters[i]!), inputs[i]!)).backward();
      if (skips) optimizer.stepUnless(skip);
      else optimizer.step();
      optimizer.zeroGrad();
    };
  const functions = new Map<string, ReturnType<typeof functionOf>>();
  const compiled: { readonly cache: { readonly misses: number }; dispose(): void }[] = [];
  const values: number[][] = [];
  for (let step = 0; step < steps; step++) {
    before?.(optimizer, step);
    if (step === reloadsAt && optimizer instanceof ShardedOptimizer)
      await optimizer.loadStateDict((await optimizer.stateDict()) as OptimizerState);
    const used = [...parameters.keys()].filter((i) => isUsed(i, step));
    const key = `${used.join()} ${maySkip(step)}`;
    const run = functionOf(used, maySkip(step));
    if (isCompiled && !functions.has(key)) {
      const made = compile(run);
      compiled.push(made);
      functions.set(key, made);
    }
    const skip = toDevice(full([], step % 4 === 3 ? 1 : 0), device);
    scope(() => void (functions.get(key) ?? run)(skip, ...parameters.map((_, i) => inputOf(step, i))));
    values.push(parameters.flatMap((x) => x.toFlatArray()));
  }
  const misses = Math.max(0, ...compiled.map(({ cache }) => cache.misses));
  for (const each of compiled) each.dispose();
  optimizer.dispose();
  return { values, misses };
}

const options = { learningRate: 0.1, weightDecay: 0.1 };
type Groups = { parameters: Tensor[] }[];

for (const [name, scenario] of Object.entries(scenarios)) {
  const Class = (scenario.isSgd ? SGD : AdamW) as typeof AdamW;
  const whole = (groups: Groups) => new Class(groups, options) as unknown as Optimizer;
  const sharded = (groups: Groups) =>
    new ShardedOptimizer(groups, Class, group, options, { bucketBytes: 17 }) as unknown as Optimizer;
  const expected = await train(scenario, whole, false);
  for (const isCompiled of [false, true]) {
    const { values, misses } = await train(scenario, sharded, isCompiled);
    const isSame = (x: number, y: number) =>
      place === 'gloo' ? x === y : Math.abs(x - y) <= 2 ** -14 * Math.abs(y);
    const differing = values.findIndex((of, step) =>
      of.some((x, i) => !isSame(x, expected.values[step]![i]!)),
    );
    deepStrictEqual(differing, -1, `${name}: ${isCompiled ? 'compiled' : 'eager'} steps`);
    // The first step makes the state, which the second finds; a state that is loaded, or begins with a momentum, is another one.
    const states = scenario.isSgd || scenario.reloadsAt !== undefined ? 2 : 1;
    ok(misses <= 2 * states, `${name}: recorded ${misses} times`);
  }
}

/** What an eager step refuses, also on ranks that update nothing. */
async function checkRefusals(): Promise<void> {
  const parameter = keep(toDevice(full([3], 1), device)).requiresGrad_();
  const optimizer = new ShardedOptimizer([parameter], AdamW, group);
  const step = compile((x: Tensor) => {
    sum(mul(parameter, x)).backward();
    optimizer.step();
    optimizer.zeroGrad();
  });
  const run = () => scope(() => void step(on([1, 2, 3])));
  for (let i = 0; i < 3; i++) run();
  const saved = optimizer.stateDict();
  throws(run, /step: stateDict\(\) is under way; await it first/);
  const loaded = saved.then((state) => optimizer.loadStateDict(state));
  await saved;
  throws(run, /step: loadStateDict\(\) is under way; await it first/);
  await loaded;
  parameter.grad = null;
  for (let i = 0; i < 3; i++) run();
  optimizer.dispose();
  throws(run, /step: the optimizer was used after it had been disposed/);
  step.dispose();
}
await checkRefusals();

group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
