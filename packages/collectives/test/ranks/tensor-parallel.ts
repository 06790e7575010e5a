import { deepStrictEqual, ok, throws } from 'node:assert/strict';
import {
  Generator,
  type Tensor,
  add,
  copy,
  copyInPlace,
  crossEntropy,
  keep,
  linear,
  mul,
  noGrad,
  randn,
  scope,
  slice,
  sum,
  tensor,
  view,
} from '@roofline/tensor-core';
import { SGD, clipGradientNorm } from '@roofline/optim';
import { TransformerLM, languageModelLoss } from '@roofline/transformer';
import {
  DistributedDataParallel,
  Mesh,
  ShardedOptimizer,
  type TensorParallel,
  fullyShard,
  parallelize,
} from '@roofline/collectives';
import { DividedVocabulary } from '../../src/parallel/tensor/divided-vocabulary.ts';
import {
  type Stepping,
  batchOf,
  boundOf,
  build,
  config,
  device,
  exact,
  expectClose,
  fewKinds,
  gpt2,
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
  ways,
} from './tensor-parallel-training.ts';
import { usesOfDividedLayers } from './tensor-parallel-uses.ts';

// Layers divided over ranks, held to one rank with the whole model, within what sums of so many terms may lose: on the CPU passes in
// float64, where what differs by more than 1e-11 is a mistake, and training in float32. Further arguments name scenarios; all if
// there are none.

/** That gradients are clipped to. */
const maxNorm = 0.5;

const scenarios: Readonly<Record<string, () => void | Promise<void>>> = {
  /** Of one rank, whatever is made again, and with logits in chunks. */
  gradients() {
    for (const [name, given] of Object.entries(kinds))
      for (const [logits, recompute] of ways) {
        const alone = build(given, { dtype: exact });
        const parallel = parallelize(build(given, { dtype: exact, recompute }), group);
        const { ids, targets } = batchOf(9);
        scope(() => languageModelLoss(alone, ids, targets).backward());
        scope(() => languageModelLoss(parallel.module, ids, targets, { logits }).backward());
        const bound = boundOf(given, 1, exact);
        expectClose(
          `${name}, ${logits}, ${recompute}`,
          valuesOf(parallel.wholeGradients()),
          gradientsOf(alone),
          bound,
        );
        parallel.dispose();
        alone.dispose();
      }
  },

  /** Batches of other sizes before one backward pass, which makes blocks of both again after a pass without gradients. */
  passes() {
    const alone = build(config, { dtype: exact });
    const parallel = parallelize(build(config, { dtype: exact, recompute: 'block' }), group);
    for (const model of [alone, parallel.module])
      scope(() => {
        const [first, second] = [batchOf(0), batchOf(1)];
        const lossOf = ({ ids, targets }: typeof first, rows: number, tokens: number) => {
          const part = (x: Tensor) => slice(slice(x, 0, 0, rows), 1, 0, tokens);
          return languageModelLoss(model, part(ids), part(targets));
        };
        const both = add(lossOf(first, 3, 8), lossOf(second, 1, 4));
        noGrad(() => scope(() => lossOf(first, 2, 7).item()));
        both.backward();
      });
    const bound = boundOf(config, 2, exact);
    expectClose('passes', valuesOf(parallel.wholeGradients()), gradientsOf(alone), bound);
    parallel.dispose();
    alone.dispose();
  },

  /** Losses and parameters of one rank, eagerly and compiled, with clipping, which counts each parameter once. */
  training() {
    for (const [name, given] of Object.entries(fewKinds)) {
      const alone = build(given);
      const clipped = () => ok(clipGradientNorm(alone.parameters(), maxNorm).item() > maxNorm);
      const expected = train(alone, sgd(alone.parameters()), { clip: clipped });
      for (const compiled of [undefined, {}]) {
        const model = build(given, { recompute: compiled ? 'block' : 'none' });
        const parallel = parallelize(model, group);
        const { ranks } = parallel;
        const clip = () => void clipGradientNorm(parallel.parameters(), maxNorm, { ranks });
        const losses = train(model, sgd(parallel.parameters()), { clip, compiled });
        const what = `${name}, ${compiled ? 'compiled' : 'eager'}`;
        expectClose(what, { losses }, { losses: expected }, boundOf(given, 3));
        const parameters = valuesOf(parallel.wholeParameters());
        expectClose(what, parameters, valuesOf(alone.namedParameters()), boundOf(given, 3));
        parallel.dispose();
      }
      alone.dispose();
    }
  },

  /** By finite differences, of each rank's parameters in turn: the losses of all ranks are one number. */
  differences() {
    if (exact !== 'float64') return;
    const small = { ...config, vocabularySize: 8, modelDimension: 8, feedForwardDimension: 8, layers: 1 };
    const parallel = parallelize(build({ ...small, ...gpt2 }, { dtype: exact }), group);
    const ids = tensor([[0, 3, 7, 5]], { dtype: 'int32', device });
    const targets = tensor([[4, -100, 7, 1]], { dtype: 'int32', device });
    const loss = () => languageModelLoss(parallel.module, ids, targets);
    scope(() => loss().backward());
    const width = 1e-5;
    for (const { name, leaf, box } of parallel.parts()) {
      const place = noGrad(() =>
        keep(slice(view(leaf, [leaf.size]), 0, leaf.size >> 1, (leaf.size >> 1) + 1)),
      );
      // What all ranks have alike, all change.
      for (let holder = 0; holder < (box ? size : 1); holder++) {
        const isMine = !box || holder === rank;
        const lossAt = (offset: number) =>
          noGrad(() =>
            scope(() => {
              const before = keep(copy(place));
              if (isMine) copyInPlace(place, add(place, offset));
              const value = loss().item();
              copyInPlace(place, before);
              before.dispose();
              return value;
            }),
          );
        const difference = (lossAt(width) - lossAt(-width)) / (2 * width);
        const gradient = view(leaf.grad!, [leaf.size]).toFlatArray()[leaf.size >> 1]!;
        if (isMine)
          ok(Math.abs(difference - gradient) < 1e-8, `${name} of rank ${holder}: ${difference}, ${gradient}`);
      }
    }
    parallel.dispose();
  },

  /** Half of the ranks share each layer, over the others data is parallel: replicated, its optimizer sharded, or all sharded. */
  async axes() {
    if (size !== 4) return;
    using mesh = await Mesh.create(group, { data: 2, tensor: 2 });
    const data = mesh.along('data');
    for (const [name, given] of Object.entries(fewKinds)) {
      const alone = build(given);
      // Each half has a mean over its own tokens, of which as many count.
      const expected = trainParts(alone, 2);
      for (const way of ['replicated', 'sharded optimizer', 'sharded'] as const)
        for (const compiled of way === 'sharded optimizer' ? [undefined] : [undefined, {}]) {
          const model = build(given);
          let parallel: TensorParallel<TransformerLM> = parallelize(model, mesh);
          let optimizer: Stepping & { dispose(): void };
          let release = () => {};
          if (way === 'sharded') {
            parallel = parallel.with(fullyShard(model, data));
            optimizer = sgd(parallel.parameters());
          } else {
            const replicas = new DistributedDataParallel(model, data);
            release = () => replicas.dispose();
            optimizer =
              way === 'replicated'
                ? sgd(parallel.parameters())
                : new ShardedOptimizer(model.parameters(), SGD, data, { learningRate: 0.1 });
          }
          const { ranks } = parallel;
          const clip = () => void clipGradientNorm(parallel.parameters(), maxNorm, { ranks });
          train(model, optimizer, { of: data.rank, clip, compiled });
          const what = `${name}, ${way}, ${compiled ? 'compiled' : 'eager'}`;
          const parameters = valuesOf(parallel.wholeParameters());
          expectClose(what, parameters, expected, boundOf(given, 3));
          release();
          parallel.dispose();
        }
      alone.dispose();
    }
  },

  /** Pairs of ranks share each layer, and pairs of those all parameters; the gradients of two such fours are averaged. */
  async 'three axes'() {
    if (size !== 8) return;
    using mesh = await Mesh.create(group, { replicate: 2, shard: 2, tensor: 2 });
    const given = { ...kinds['grouped queries']!, keyValueHeads: 1, layers: 1 };
    throws(
      () => fullyShard(build(given), mesh),
      /has the axis tensor, and the model is whole; call parallelize/,
    );
    const alone = build(given);
    const expected = trainParts(alone, 4);
    for (const compiled of [undefined, {}]) {
      const model = build(given);
      const divided = parallelize(model, mesh);
      const parallel = divided.with(fullyShard(model, mesh));
      // Of all ranks those of the first replica, which write checkpoints.
      deepStrictEqual([...parallel.shardGroup.ranks], rank < 4 ? [0, 1, 2, 3] : [4, 5, 6, 7]);
      const clip = () => void clipGradientNorm(parallel.parameters(), maxNorm, { ranks: parallel.ranks });
      const of = Math.floor(rank / 2);
      train(model, sgd(parallel.parameters()), { of, parts: 4, clip, compiled });
      const what = `three axes, ${compiled ? 'compiled' : 'eager'}`;
      expectClose(what, valuesOf(parallel.wholeParameters()), expected, boundOf(given, 3));
      parallel.dispose();
    }
    alone.dispose();
  },

  /** A loss in chunks of rows, the last of them shorter, is that of whole logits. */
  chunks() {
    const [rows, features, tokens] = [10, 6, config.vocabularySize];
    const random = (shape: number[], seed: number) =>
      randn(shape, { generator: new Generator(seed), device, dtype: exact, requiresGrad: true });
    const [x, weight] = [random([rows, features], 1), random([tokens, features], 2)];
    const own = tokens / size;
    // Run, both are from the sources, which sourceScripts sees to; to the checker of types the group may be what was built.
    const vocabulary = new DividedVocabulary(tokens, group as never, weight);
    const targets = batchOf(0).targets;
    const some = slice(view(targets, [targets.size]), 0, 0, rows);
    const part = () => slice(weight, 0, rank * own, (rank + 1) * own);
    // Four rows a chunk.
    const divided = vocabulary.loss(x, part(), some, 'chunked', 4 * own * Float32Array.BYTES_PER_ELEMENT);
    divided.backward();
    noGrad(() => [x, weight].forEach(({ grad }) => group.allReduce(grad!).wait()));
    const given = { x: x.grad!.toFlatArray(), weight: weight.grad!.toFlatArray(), loss: [divided.item()] };
    [x.grad, weight.grad] = [null, null];
    const whole = crossEntropy(linear(x, weight), some);
    whole.backward();
    const expected = { x: x.grad!.toFlatArray(), weight: weight.grad!.toFlatArray(), loss: [whole.item()] };
    expectClose('chunks', given, expected, boundOf(config, 1, exact));
    const [noRows, noTargets] = [slice(x, 0, 0, 0), slice(some, 0, 0, 0)];
    for (const logits of ['whole', 'chunked'] as const)
      deepStrictEqual(vocabulary.loss(noRows, part(), noTargets, logits).item(), NaN);
    vocabulary.dispose();
  },

  /** Logits are those of one rank, for any op that takes them. */
  logits() {
    const alone = build(config, { dtype: exact });
    const parallel = parallelize(build(config, { dtype: exact }), group);
    const { ids } = batchOf(2);
    const weights = noGrad(() => randn([4, 8, 24], { generator: new Generator(7), device, dtype: exact }));
    for (const model of [alone, parallel.module])
      scope(() => sum(mul(model.forward(ids), weights)).backward());
    const bound = boundOf(config, 1, exact);
    expectClose('logits', valuesOf(parallel.wholeGradients()), gradientsOf(alone), bound);
    const given = noGrad(() => scope(() => parallel.module.forward(ids).toFlatArray()));
    const expected = noGrad(() => scope(() => alone.forward(ids).toFlatArray()));
    expectClose('logits', { logits: given }, { logits: expected }, bound);
    parallel.dispose();
    alone.dispose();
  },

  ...usesOfDividedLayers,
};

const chosen = process.argv.slice(3);
for (const [name, run] of Object.entries(scenarios))
  if (chosen.length === 0 || chosen.includes(name)) await run();
group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
