import { deepStrictEqual, ok, throws } from 'node:assert/strict';
import {
  type CompileOptions,
  Generator,
  type Tensor,
  add,
  autocast,
  copyInPlace,
  fillInPlace,
  full,
  mul,
  noGrad,
  observeOps,
  randn,
  scope,
  slice,
  sum,
} from '@roofline/tensor-core';
import { clipGradientNorm } from '@roofline/optim';
import {
  KeyValueCache,
  Linear,
  type ModelConfig,
  type RecomputePolicy,
  TransformerLM,
  languageModelLoss,
  plainAttention,
} from '@roofline/transformer';
import { flashAttentionParts } from '@roofline/flash-attn';
import {
  type AttentionParts,
  type ContextParallel,
  DistributedDataParallel,
  Mesh,
  contextParallel,
  fullyShard,
} from '@roofline/collectives';
import { plainAttentionParts } from '../../src/parallel/context/attention-parts.ts';
import {
  batchOf,
  boundOf,
  build,
  config,
  device,
  exact,
  expectClose,
  gradientsOf,
  group,
  kinds,
  nccl,
  rank,
  sgd,
  size,
  train,
  trainParts,
  valuesOf,
} from './tensor-parallel-training.ts';

// Sequences divided over ranks, held to one rank that has them whole, within what sums in another order may lose: on the CPU passes in
// float64, training in float32. Further arguments name scenarios; all if there are none.

const ways: Readonly<Record<string, AttentionParts>> = {
  plain: plainAttentionParts,
  flash: flashAttentionParts,
};
const chosenKinds = Object.entries(kinds).filter(([name]) => name !== 'fewer keys than ranks');

function divided(given: ModelConfig, parts: AttentionParts, options: object = {}) {
  const context = contextParallel(group, { parts });
  const model = build(given, { attention: context.attention, ...options });
  context.divide(model);
  return { context, model };
}

function shardOf(context: ContextParallel, { ids, targets }: { ids: Tensor; targets: Tensor }) {
  return { ids: context.shardOf(ids), targets: context.shardOf(targets) };
}

/** Whole gradients of a model that each rank has: the mean of theirs. */
function meanGradients(model: TransformerLM) {
  noGrad(() => {
    for (const { grad } of model.parameters()) group.allReduce(grad!, { op: 'average' }).wait();
  });
  return gradientsOf(model);
}

function compareGradients(
  what: string,
  given: ModelConfig,
  options: object,
  parts: AttentionParts,
  logits: 'whole' | 'chunked',
  batch = batchOf(9),
) {
  const alone = build(given, { dtype: exact });
  const { context, model } = divided(given, parts, { dtype: exact, ...options });
  const whole = scope(() => {
    const loss = languageModelLoss(alone, batch.ids, batch.targets);
    loss.backward();
    return loss.item();
  });
  const own = scope(() => {
    const { ids, targets } = shardOf(context, batch);
    const loss = languageModelLoss(model, ids, targets, { logits });
    loss.backward();
    const mean = loss.detach();
    group.allReduce(mean, { op: 'average' }).wait();
    return mean.item();
  });
  const bound = boundOf(given, 1, exact);
  expectClose(what, meanGradients(model), gradientsOf(alone), bound);
  expectClose(what, { loss: [own] }, { loss: [whole] }, bound);
  for (const each of [model, alone]) each.dispose();
}

const scenarios: Readonly<Record<string, () => void | Promise<void>>> = {
  /** Attention alone, its gradients, and these by finite differences, with as many heads of keys or fewer. */
  attention() {
    const length = 4 * size;
    const settings = { causal: true, scale: 0.7 };
    for (const [name, parts] of Object.entries(ways))
      for (const keyHeads of [4, 2, 1]) {
        const random = (heads: number, seed: number) =>
          randn([2, heads, length, 3], {
            generator: new Generator(seed),
            device,
            dtype: exact,
            requiresGrad: true,
          });
        const wholes = [random(4, 1), random(keyHeads, 2), random(keyHeads, 3)] as const;
        const weights = noGrad(() => random(4, 4).detach());
        const context = contextParallel(group, { parts });
        const own = (x: Tensor) => {
          const at = (place: number) => slice(x, 2, 2 * place, 2 * place + 2);
          return [at(rank), at(2 * size - 1 - rank)] as const;
        };
        const joined = ([a, b]: readonly [Tensor, Tensor]) => {
          const whole = noGrad(() => full([...a.shape.slice(0, 2), 4, 3], 0, { device, dtype: exact }));
          noGrad(() => {
            copyInPlace(slice(whole, 2, 0, 2), a);
            copyInPlace(slice(whole, 2, 2, 4), b);
          });
          return whole;
        };
        const shards = wholes.map((x) => joined(own(x.detach())).requiresGrad_());
        const [q, k, v] = shards as [Tensor, Tensor, Tensor];
        const ownWeights = joined(own(weights));
        const lossOf = () => sum(mul(context.attention(q, k, v, settings), ownWeights));
        scope(() => lossOf().backward());
        scope(() => sum(mul(plainAttention(...wholes, settings), weights)).backward());
        const numbers = (tensors: readonly Tensor[]) => ({
          q: tensors[0]!.toFlatArray(),
          k: tensors[1]!.toFlatArray(),
          v: tensors[2]!.toFlatArray(),
        });
        const expected = wholes.map((x) => joined(own(x.grad!)));
        const bound = boundOf({ ...config, contextLength: length }, 1, exact);
        expectClose(
          `${name}, ${keyHeads} heads of keys`,
          numbers(shards.map((x) => x.grad!)),
          numbers(expected),
          bound,
        );
        if (exact !== 'float64') continue;
        for (const [i, shard] of shards.entries())
          for (let holder = 0; holder < size; holder++) {
            const width = 1e-5;
            const element = slice(slice(slice(slice(shard.detach(), 0, 1, 2), 1, 0, 1), 2, 1, 2), 3, 2, 3);
            const lossAt = (offset: number) =>
              noGrad(() =>
                scope(() => {
                  if (rank === holder) copyInPlace(element, add(element, offset));
                  const loss = lossOf().detach();
                  group.allReduce(loss).wait();
                  if (rank === holder) copyInPlace(element, add(element, -offset));
                  return loss.item();
                }),
              );
            const difference = (lossAt(width) - lossAt(-width)) / (2 * width);
            const gradient = slice(
              slice(slice(slice(shard.grad!, 0, 1, 2), 1, 0, 1), 2, 1, 2),
              3,
              2,
              3,
            ).item();
            if (rank === holder)
              ok(
                Math.abs(difference - gradient) < 1e-8,
                `${name} ${i} of rank ${holder}: ${difference}, ${gradient}`,
              );
          }
      }
  },

  /** Of all parameters, whatever is made again, with logits in chunks, and where a rank has no target that counts. */
  gradients() {
    for (const [name, given] of chosenKinds)
      for (const [way, parts] of Object.entries(ways)) {
        const policies: RecomputePolicy[] =
          name === 'llama' && size === 2 ? ['none', 'block', 'attention-kept'] : ['none'];
        for (const recompute of policies)
          compareGradients(
            `${name}, ${way}, ${recompute}`,
            given,
            { recompute },
            parts,
            recompute === 'block' ? 'chunked' : 'whole',
          );
      }
    // One rank alone would have none, and a loss of NaN.
    if (size === 1) return;
    const { ids, targets } = batchOf(8);
    // The first rank's chunks are the first and the last.
    for (const place of [0, 2 * size - 1])
      fillInPlace(slice(targets, 1, (place * 8) / (2 * size), ((place + 1) * 8) / (2 * size)), -100);
    compareGradients('no target on rank 0', config, {}, plainAttentionParts, 'whole', { ids, targets });
  },

  /** Losses and parameters of one rank, eagerly and compiled, replicated and sharded over the same ranks. */
  training() {
    const given = kinds['grouped queries']!;
    const alone = build(given);
    const clipped = () => void clipGradientNorm(alone.parameters(), 0.5);
    const expected = train(alone, sgd(alone.parameters()), { clip: clipped });
    const modes = [
      ['replicated', plainAttentionParts, undefined],
      ['sharded', flashAttentionParts, undefined],
      ['sharded', flashAttentionParts, {}],
      ['replicated', plainAttentionParts, {}],
    ] as const;
    for (const [mode, parts, compiled] of modes) {
      const { context, model } = divided(given, parts, { recompute: compiled ? 'attention-kept' : 'none' });
      const sharded = mode === 'sharded' ? fullyShard(model, group) : null;
      const replicas = sharded ? null : new DistributedDataParallel(model, group);
      const parameters = () => (sharded ?? model).parameters();
      const options = sharded ? { ranks: sharded.ranks } : {};
      const clip = () => void clipGradientNorm(parameters(), 0.5, options);
      const own = train(model, sgd(parameters()), {
        clip,
        compiled: compiled as CompileOptions | undefined,
        prepare: (batch) => shardOf(context, batch),
      });
      const losses = own.map((loss) => {
        const mean = full([1], loss, { device });
        group.allReduce(mean, { op: 'average' }).wait();
        return mean.item();
      });
      const what = `${mode}, ${compiled ? 'compiled' : 'eager'}`;
      expectClose(what, { losses }, { losses: expected }, boundOf(given, 3));
      const values = valuesOf(sharded ? sharded.wholeParameters() : model.namedParameters());
      expectClose(what, values, valuesOf(alone.namedParameters()), boundOf(given, 3));
      replicas?.dispose();
      (sharded ?? model).dispose();
    }
  },

  /** Pairs of ranks have each sequence, and all four of them the parameters. */
  async axes() {
    if (size !== 4) return;
    using mesh = await Mesh.create(group, { data: 2, context: 2 });
    const alone = build(config);
    const expected = trainParts(alone, 2);
    const context = contextParallel(mesh, { parts: flashAttentionParts });
    const model = build(config, { attention: context.attention });
    context.divide(model);
    const sharded = fullyShard(model, group);
    const clip = () => void clipGradientNorm(sharded.parameters(), 0.5, { ranks: sharded.ranks });
    const of = mesh.along('data').rank;
    train(model, sgd(sharded.parameters()), { of, clip, prepare: (batch) => shardOf(context, batch) });
    expectClose('axes', valuesOf(sharded.wholeParameters()), expected, boundOf(config, 3));
    sharded.dispose();
    alone.dispose();
  },

  /** Under autocast losses are no further from float32's than twice as far as those of one rank; halves travel, in 2 bytes. */
  precision() {
    const { ids, targets } = batchOf(1);
    const alone = build(config);
    const { context, model } = divided(config, flashAttentionParts);
    const lossOf = (of: TransformerLM, x: Tensor, y: Tensor, low: boolean) =>
      scope(() => {
        const forward = () => languageModelLoss(of, x, y);
        const loss = (low ? autocast('bfloat16', forward) : forward()).detach();
        if (of === model) group.allReduce(loss, { op: 'average' }).wait();
        return loss.item();
      });
    const wide = lossOf(alone, ids, targets, false);
    const own = shardOf(context, { ids, targets });
    const sent = new Set<string>();
    const stop = observeOps({ before: ({ name }, [x]) => void (name === 'shift' && sent.add(x!.dtype)) });
    const error = Math.abs(lossOf(model, own.ids, own.targets, true) - wide);
    stop();
    const theirs = Math.abs(lossOf(alone, ids, targets, true) - wide);
    ok(error <= 2 * theirs + 2 ** -8, `${error}, one rank ${theirs}`);
    deepStrictEqual([...sent], ['bfloat16']);
  },

  /**
   * Bytes that a rank sends: keys and values n - 1 times forward, and backward once more with their gradients n times, in float32; where
   * attention is made again n - 1 times more.
   */
  traffic() {
    for (const [recompute, again] of [
      ['none', 0],
      ['attention-kept', 0],
      ['block', 1],
    ] as const) {
      const { context, model } = divided(config, flashAttentionParts, { recompute });
      const { ids, targets } = shardOf(context, batchOf(0));
      let sent = 0;
      const stop = observeOps({
        before: ({ name }, [x]) => void (name === 'shift' && (sent += x!.byteLength)),
      });
      const loss = languageModelLoss(model, ids, targets);
      const keys = 2 * ids.size * config.modelDimension * config.layers * Float32Array.BYTES_PER_ELEMENT;
      deepStrictEqual(sent, (size - 1) * keys);
      loss.backward();
      stop();
      deepStrictEqual(sent, ((2 + again) * (size - 1) + size) * keys, recompute);
      model.dispose();
    }
  },

  /** A rank that comes late is waited for. */
  late() {
    const { context, model } = divided(config, plainAttentionParts);
    const { ids, targets } = shardOf(context, batchOf(0));
    const loss = () => scope(() => languageModelLoss(model, ids, targets).item());
    const expected = loss();
    const from = performance.now();
    if (rank === size - 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    deepStrictEqual(loss(), expected);
    ok(performance.now() - from > 400);
    model.dispose();
  },

  async errors() {
    throws(() => contextParallel({} as never), /takes a Mesh or a ProcessGroup, not/);
    throws(() => contextParallel(group, { parts: {} as never }), /parts must have forward and backward/);
    using mesh = await Mesh.create(group, { shard: size });
    throws(() => contextParallel(mesh), /has the axes shard; name one of them context/);
    const { context, model } = divided(config, plainAttentionParts);
    throws(() => context.divide(new Linear(2, 2, { device }) as never), /takes a TransformerLM, not/);
    throws(() => context.divide(model), /has a loss of its own/);
    // A rank's own keys may be fewer than the window, which then nobody would ask for.
    const windowed = build({ ...config, slidingWindow: 4 }, { attention: context.attention });
    throws(
      () => context.divide(windowed),
      /a sliding window of 4 is shorter than the context of 8, and the ring knows none/,
    );
    const widest = build({ ...config, slidingWindow: 8 }, { attention: context.attention });
    context.divide(widest);
    const tokens = (length: number) => full([1, length], 1, { dtype: 'int64', device });
    throws(
      () => context.shardOf(tokens(2 * size + 1)),
      new RegExp(`must be \\[batch, tokens\\], of a multiple of ${2 * size} tokens for ${size} ranks`),
    );
    throws(
      () => model.forward(tokens(3)),
      /3 tokens of a rank are not two chunks; divide sequences by shardOf/,
    );
    throws(() => model.forward(tokens(16)), /longer than the context of 8; shorten it/);
    throws(
      () => noGrad(() => model.forward(tokens(2), new KeyValueCache(8))),
      /has no cache; generate with a model/,
    );
    const local = build(config);
    contextParallel(group).divide(local);
    throws(() => local.forward(tokens(2)), /build it with \{ attention: context\.attention \}/);
    if (size === 1) return;
    throws(
      () => context.shardOf(tokens(2 * size * (1 + Number(rank === 1)))),
      new RegExp(
        `rank 0 has \\[1, ${2 * size}\\], rank 1 has \\[1, ${4 * size}\\].*give all ranks of a context the same ones`,
      ),
    );
  },
};

const chosen = process.argv.slice(3);
for (const [name, run] of Object.entries(scenarios))
  if (chosen.length === 0 || chosen.includes(name)) await run();
group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
