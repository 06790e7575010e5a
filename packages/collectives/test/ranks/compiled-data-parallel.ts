import { deepStrictEqual, ok, throws } from 'node:assert/strict';
import {
  CompileError,
  type CompileOptions,
  type Tensor,
  autocast,
  compile,
  scope,
} from '@roofline/tensor-core';
import { AdamW, GradientScaler, SGD, clipGradientNorm } from '@roofline/optim';
import { TransformerLM, languageModelLoss } from '@roofline/transformer';
import { DistributedDataParallel, ShardedOptimizer } from '@roofline/collectives';
import { groupOf, place } from './group-of.ts';
import { rowsOf, smallModel } from './joined-batch.ts';

// A data-parallel training step as one program, forward, backward, reduction and update: it does what it does eagerly.

const { group, device, nccl } = await groupOf();
const { rank, size } = group;
const modes = ['naive', 'flat', 'overlap'] as const;
const steps = 6;
const config = { ...smallModel, layers: 2 };

interface Stepping {
  step(): void;
  zeroGrad(): void;
}

interface Scenario {
  optimizer(model: TransformerLM): Stepping;
  /** The step after the backward pass. */
  finish?(model: TransformerLM, optimizer: Stepping): void;
  around?(run: () => void): void;
  scaler?(): GradientScaler;
}

const adamw = (model: TransformerLM) =>
  new AdamW(model.parameters(), { learningRate: 0.01, eps: 0.01, weightDecay: 0.1 });

const scenarios: Readonly<Record<string, Scenario>> = {
  SGD: { optimizer: (model) => new SGD(model.parameters(), { learningRate: 0.1, momentum: 0.9 }) },
  AdamW: { optimizer: adamw },
  'clipping and AdamW': {
    optimizer: adamw,
    finish(model, optimizer) {
      clipGradientNorm(model.parameters(), 0.05);
      optimizer.step();
    },
  },
  'sharded AdamW': {
    optimizer: (model) =>
      new ShardedOptimizer(
        model.parameters(),
        AdamW,
        group,
        { learningRate: 0.01, eps: 0.01 },
        { bucketBytes: 3000 },
      ),
  },
  autocast: { optimizer: adamw, around: (run) => autocast('bfloat16', run) },
  scaler: {
    optimizer: adamw,
    around: (run) => autocast('float16', run),
    scaler: () => new GradientScaler({ initialScale: 1024 }),
  },
};

/** The losses and the parameters after training, eagerly or compiled. */
function train(
  scenario: Scenario,
  mode: (typeof modes)[number],
  options: CompileOptions | null,
): { losses: number[]; parameters: number[][] } {
  const model = new TransformerLM(config, { seed: rank + 1, device });
  const parallel = new DistributedDataParallel(model, group, { mode, bucketBytes: 3000 });
  const optimizer = scenario.optimizer(model);
  const scaler = scenario.scaler?.();
  const { around = (run) => run(), finish = (_, { step }) => step.call(optimizer) } = scenario;
  const step = (ids: Tensor, targets: Tensor): Tensor => {
    let loss: Tensor;
    around(() => {
      loss = languageModelLoss(model, ids, targets);
      if (scaler) scaler.scale(loss).backward();
      else loss.backward();
    });
    if (scaler) {
      scaler.step(optimizer as never);
      scaler.update();
    } else finish(model, optimizer);
    optimizer.zeroGrad();
    return loss!.detach();
  };
  const compiled = options && compile(step, options);
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    parallel.step = i;
    scope(() => {
      const { ids, targets } = batchOf(i);
      losses.push(...(compiled ?? step)(ids, targets).toFlatArray());
    });
  }
  // The first step makes the optimizer's state, which the second finds.
  if (compiled)
    ok(compiled.cache.misses <= 2 && compiled.cache.hits >= steps - 2, JSON.stringify(compiled.cache));
  if (compiled && place !== 'gloo' && size > 1) {
    const { table } = compiled.explain()[0]!;
    const calls = table.filter(({ op }) => op === 'allReduce');
    deepStrictEqual(calls.length, parallel.buckets.length);
    // Gradients are made where they are reduced.
    deepStrictEqual(
      table.filter(({ op }) => op.includes('copy_')),
      [],
    );
    // What has been updated is sent while the rest is. Gradients of their own are taken earlier, all of them.
    const sent = table.findIndex(({ op }) => op === 'broadcast');
    if (sent >= 0 && mode !== 'naive')
      ok(table.findLastIndex(({ op }) => op.includes('adamw')) > sent, 'all is sent at the end');
    // In buckets beside the backward pass: between the first and the last lie products of it.
    if (mode === 'overlap' && options.branches !== 'never') {
      const [first, last] = [table.indexOf(calls[0]!), table.indexOf(calls.at(-1)!)];
      ok(
        table.slice(first, last).some(({ op }) => op.includes('matmul') || op.includes('product')),
        'nothing runs between',
      );
      ok(calls.every(({ waitedForBy }) => waitedForBy !== null));
    }
  }
  compiled?.dispose();
  parallel.dispose();
  const parameters = [...model.parameters()].map((x) => x.toFlatArray());
  (optimizer as unknown as Disposable)[Symbol.dispose]();
  model.dispose();
  return { losses, parameters };
}

const batchOf = (step: number) => rowsOf(step, rank, { size, device });

/** Fused kernels of a GPU round elsewhere, and its products may add in another order. */
function expectSame(
  what: string,
  given: readonly number[][],
  expected: readonly number[][],
  tolerance: number,
): void {
  if (place === 'gloo') return deepStrictEqual(given, expected, what);
  for (const [i, values] of expected.entries()) {
    const scale = Math.max(...values.map(Math.abs), 1e-3);
    const worst = Math.max(...values.map((value, j) => Math.abs(value - given[i]![j]!)));
    ok(worst <= tolerance * scale, `${what}: tensor ${i} differs by ${worst}, its largest value is ${scale}`);
  }
}

const tolerances: Readonly<Record<string, number>> = { autocast: 8 * 2 ** -8, scaler: 8 * 2 ** -11 };
const chosen = process.argv.slice(3);
for (const [name, scenario] of Object.entries(scenarios)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  for (const mode of modes) {
    const eager = train(scenario, mode, null);
    for (const branches of place === 'gloo' ? (['auto'] as const) : (['auto', 'never'] as const)) {
      const compiled = train(scenario, mode, { branches });
      const what = `${name}, ${mode}, branches ${branches}`;
      const tolerance = tolerances[name] ?? 1000 * 2 ** -24;
      expectSame(`the losses, ${what}`, [compiled.losses], [eager.losses], tolerance);
      expectSame(`the parameters, ${what}`, compiled.parameters, eager.parameters, tolerance);
      for (const others of await group.allGatherObject(compiled.parameters))
        deepStrictEqual(others, compiled.parameters, `all ranks have the same, ${what}`);
    }
  }
}

/** Gradients that add up on one rank, then are reduced, and a wrapper that goes: each is a program of its own. */
function checkChanges(): void {
  const model = new TransformerLM(config, { seed: 1, device });
  const parallel = new DistributedDataParallel(model, group);
  const step = compile((ids: Tensor, targets: Tensor) => {
    languageModelLoss(model, ids, targets).backward();
  });
  const gradients = () => [...model.parameters()].map((x) => x.grad!.toFlatArray());
  const run = () => scope(() => step(batchOf(0).ids, batchOf(0).targets));
  const forget = () => {
    for (const x of model.parameters()) x.grad = null;
  };
  run();
  const reduced = gradients();
  forget();
  run();
  expectSame('reduced', gradients(), reduced, 2 ** -14);
  forget();
  parallel.noSync(run);
  const own = gradients();
  if (size > 1) ok(own.some((values, i) => values.some((value, j) => value !== reduced[i]![j])));
  forget();
  parallel.noSync(run);
  expectSame('of this rank alone', gradients(), own, 2 ** -14);
  forget();
  run();
  expectSame('reduced again', gradients(), reduced, 2 ** -14);
  forget();
  parallel.dispose();
  run();
  expectSame('without the wrapper', gradients(), own, 2 ** -14);
  step.dispose();
}
checkChanges();

/** What a replay cannot do is refused. */
function checkRefusals(): void {
  const model = new TransformerLM(config, { seed: 1, device });
  const parallel = new DistributedDataParallel(model, group, { findUnusedParameters: true });
  const step = compile((ids: Tensor, targets: Tensor) => {
    languageModelLoss(model, ids, targets).backward();
  });
  throws(() => scope(() => step(batchOf(0).ids, batchOf(0).targets)), CompileError);
  parallel.dispose();
  step.dispose();
}
checkRefusals();

group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
