import { deepStrictEqual, ok } from 'node:assert/strict';
import {
  type CompileExplanation,
  type CompileOptions,
  type Tensor,
  compile,
  scope,
} from '@roofline/tensor-core';
import { AdamW, SGD, clipGradientNorm } from '@roofline/optim';
import { type RecomputePolicy, TransformerLM, languageModelLoss } from '@roofline/transformer';
import { type FullyShardOptions, type FullySharded, Mesh, fullyShard } from '@roofline/collectives';
import { groupOf, place } from './group-of.ts';
import { rowsOf, smallModel } from './joined-batch.ts';

// A training step of sharded parameters as one program, gathers, forward, backward, reductions and update: it does what it does
// eagerly. The first argument is the place, as `groupOf` takes it, further ones name scenarios; all if there are none.

const { group, device, nccl } = await groupOf();
const { rank, size } = group;
const steps = 4;
const config = { ...smallModel, layers: 4 };

type ExplainedCall = CompileExplanation['table'][number];
type Optimizer = Pick<AdamW, 'step' | 'zeroGrad'>;

interface Scenario {
  readonly options?: FullyShardOptions;
  readonly recompute?: RecomputePolicy;
  readonly logits?: 'whole' | 'chunked';
  readonly tieWordEmbeddings?: boolean;
  readonly hybrid?: boolean;
  optimizer?(sharded: FullySharded<TransformerLM>): Optimizer;
  /** Passes before a step. */
  readonly passes?: number;
  /** The largest norm of all gradients. */
  readonly maxNorm?: number;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  SGD: { optimizer: (it) => new SGD(it.parameters(), { learningRate: 0.1 }) },
  AdamW: {},
  'kept whole': { options: { reshardAfterForward: false } },
  'no prefetch': { options: { prefetch: false } },
  bfloat16: { options: { computeDtype: 'bfloat16' } },
  'bfloat16 block chunked': {
    options: { computeDtype: 'bfloat16' },
    recompute: 'block',
    logits: 'chunked',
  },
  block: { recompute: 'block' },
  'two blocks': { recompute: 2, tieWordEmbeddings: true },
  'attention-kept': { recompute: 'attention-kept' },
  recursive: { recompute: 'recursive' },
  chunked: { logits: 'chunked' },
  clipping: { maxNorm: 0.05 },
  accumulation: { passes: 2 },
  hybrid: { hybrid: true },
};

const mesh = size === 4 ? await Mesh.create(group, { replicate: 2, shard: 2 }) : null;

/** The losses and the parameters after training, eagerly or compiled. */
function train(
  name: string,
  scenario: Scenario,
  options: CompileOptions | null,
): { losses: number[]; parameters: Record<string, number[]> } {
  const { recompute = 'none', logits = 'whole', tieWordEmbeddings = false, passes = 1, maxNorm } = scenario;
  const model = new TransformerLM({ ...config, tieWordEmbeddings }, { seed: rank + 1, device, recompute });
  const sharded = fullyShard(model, scenario.hybrid ? mesh! : group, scenario.options);
  const adamw = () => new AdamW(sharded.parameters(), { learningRate: 0.01, eps: 0.01, weightDecay: 0.1 });
  const optimizer = scenario.optimizer?.(sharded) ?? adamw();
  const step = (ids: Tensor, targets: Tensor): Tensor => {
    let loss: Tensor;
    for (let pass = 0; pass < passes; pass++) {
      loss = languageModelLoss(model, ids, targets, { logits });
      loss.backward();
    }
    if (maxNorm !== undefined) clipGradientNorm(sharded.parameters(), maxNorm, { ranks: sharded.ranks });
    optimizer.step();
    optimizer.zeroGrad();
    return loss!.detach();
  };
  const compiled = options && compile(step, options);
  const losses: number[] = [];
  for (let i = 0; i < steps; i++)
    scope(() => {
      const { ids, targets } = rowsOf(i, rank, { size, device });
      losses.push(...(compiled ?? step)(ids, targets).toFlatArray());
    });
  // The first step makes the optimizer's state, and finds out what the backward pass gathers.
  if (compiled)
    ok(compiled.cache.misses <= 2 && compiled.cache.hits >= steps - 2, JSON.stringify(compiled.cache));
  if (compiled && place !== 'gloo' && size > 1)
    checkSchedule(name, scenario, compiled.explain().at(-1)!.table);
  compiled?.dispose();
  const parameters: Record<string, number[]> = {};
  for (const [name, whole] of sharded.wholeParameters()) parameters[name] = whole.toFlatArray();
  sharded.dispose();
  return { losses, parameters };
}

/** Gathers and reductions run beside the chain, and no more than two blocks are whole, or on their way, at a time. */
function checkSchedule(
  what: string,
  { options: { reshardAfterForward = true, prefetch = true } = {}, passes = 1 }: Scenario,
  table: readonly ExplainedCall[],
): void {
  const gathers = table.flatMap((call, at) => (call.op === 'allGather' ? [{ ...call, at }] : []));
  const reductions = table.flatMap(({ op }, at) => (op === 'reduceScatter' ? [at] : []));
  ok(reductions.length > config.layers && gathers.length > config.layers, what);
  for (const { waitedForBy } of gathers) ok(waitedForBy !== null, what);
  if (!reshardAfterForward) return deepStrictEqual(gathers.length, passes * (config.layers + 2), what);
  const spans = gathers.flatMap(({ at, outputs: [whole] }) => {
    const isReader = ({ inputs }: ExplainedCall) => inputs.some(({ storage }) => storage === whole!.storage);
    const last = table.findLastIndex(isReader);
    // Embeddings go when the first block has begun: its norm is fused with their op.
    return table[last]!.op.includes('embedding') ? [] : [{ first: at, last }];
  });
  const most = Math.max(
    ...table.map((_, at) => spans.filter(({ first, last }) => first <= at && at <= last).length),
  );
  deepStrictEqual(most, prefetch ? 2 : 1, `${what}: ${most} units are whole at once`);
  // A block's backward pass runs while its predecessor is gathered, and while its successor's gradients are reduced.
  const beside = reductions.filter((at) => table[at]!.waitedForBy! - at > 10);
  if (prefetch) ok(beside.length >= passes * (config.layers - 1), `${what}: ${beside.join()} are hidden`);
}

/** Fused kernels of a GPU round elsewhere, and its products may add in another order. */
function expectSame(
  what: string,
  given: readonly number[],
  expected: readonly number[],
  tolerance: number,
): void {
  const scale = Math.max(...expected.map(Math.abs), 1e-3);
  const worst = Math.max(...expected.map((value, i) => Math.abs(value - given[i]!)));
  ok(worst <= tolerance * scale, `${what} differs by ${worst}, its largest value is ${scale}`);
}

const chosen = process.argv.slice(3);
for (const [name, scenario] of Object.entries(scenarios)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  if (scenario.hybrid && !mesh) continue;
  const [eager, compiled] = [train(name, scenario, null), train(name, scenario, {})];
  if (place === 'gloo') {
    deepStrictEqual(compiled, eager, name);
    continue;
  }
  const tolerance = scenario.options?.computeDtype === 'bfloat16' ? 8 * 2 ** -8 : 1000 * 2 ** -24;
  expectSame(`${name}: the loss`, compiled.losses, eager.losses, tolerance);
  for (const [parameter, values] of Object.entries(eager.parameters))
    expectSame(`${name}: ${parameter}`, compiled.parameters[parameter]!, values, tolerance);
}
mesh?.dispose();
group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
