import { deepStrictEqual, match, ok, throws } from 'node:assert/strict';
import {
  Generator,
  type Tensor,
  add,
  autocast,
  copy,
  copyInPlace,
  crossEntropy,
  dropout,
  fillInPlace,
  full,
  keep,
  linear,
  mul,
  noGrad,
  observeOps,
  ones,
  randn,
  scope,
  slice,
  sum,
  tensor,
  view,
} from '@roofline/tensor-core';
import { AdamW, GradientScaler, SGD, clipGradientNorm } from '@roofline/optim';
import {
  Linear,
  type ModelConfig,
  TransformerLM,
  type AttentionFunction,
  deferWeights,
  generate,
  languageModelLoss,
  plainAttention,
} from '@roofline/transformer';
import {
  DistributedDataParallel,
  Mesh,
  ShardedOptimizer,
  type TensorParallel,
  fullyShard,
  parallelize,
} from '../../src/index.ts';
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
  trainHalves,
  valuesOf,
  ways,
} from './tensor-parallel-training.ts';

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

  /** Neither the logits nor whole activations travel; of what does, the bytes are those that are expected. */
  traffic() {
    const model = build(config);
    const parallel = parallelize(model, group);
    const sent: Record<string, number[]> = {};
    const { ids, targets } = batchOf(0);
    const stop = observeOps({
      before({ name }, inputs, outputs) {
        if (['allReduce', 'allGather', 'reduceScatter'].includes(name))
          (sent[name] ??= []).push(Math.max(...[...inputs, ...outputs].map(({ size }) => size)));
      },
    });
    scope(() => languageModelLoss(model, ids, targets).backward());
    stop();
    const [activations, rows] = [ids.size * config.modelDimension, ids.size];
    const halves = 2 * config.layers + 1;
    deepStrictEqual(
      sent['allGather'],
      Array.from({ length: 2 * halves }, () => activations),
    );
    deepStrictEqual(
      sent['reduceScatter'],
      Array.from({ length: 2 * halves }, () => activations),
    );
    const reductions = [rows, 2 * rows, ...Array.from({ length: halves }, () => config.modelDimension)];
    deepStrictEqual(sent['allReduce'], reductions);
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
      const expected = trainHalves(alone);
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

  /** In low precision losses are no further from float32's than twice as far as those of one rank. */
  precision() {
    const lossesIn = (dtype: 'float16' | 'bfloat16' | null, model: TransformerLM) =>
      Array.from({ length: 3 }, (_, step) => {
        const { ids, targets } = batchOf(step);
        const forward = () => languageModelLoss(model, ids, targets);
        return scope(() => (dtype ? autocast(dtype, forward) : forward()).item());
      });
    for (const given of Object.values(fewKinds)) {
      const alone = build(given);
      const parallel = parallelize(build(given), group);
      const wide = lossesIn(null, alone);
      const error = (losses: number[]) => Math.max(...losses.map((loss, i) => Math.abs(loss - wide[i]!)));
      for (const dtype of ['float16', 'bfloat16'] as const) {
        const [ours, theirs] = [parallel.module, alone].map((model) => error(lossesIn(dtype, model)));
        const roundings = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
        ok(ours! <= 2 * theirs! + roundings, `${dtype}: ${ours}, one rank ${theirs}`);
      }
      parallel.dispose();
      alone.dispose();
    }
  },

  /** An overflow on one rank skips the step of all. */
  scaler() {
    const parallel = parallelize(build(config), group);
    const optimizer = new AdamW(parallel.parameters(), { learningRate: 0.01 });
    const scaler = new GradientScaler({ initialScale: 1024, ranks: parallel.ranks });
    for (const overflows of [true, false]) {
      const { ids, targets } = batchOf(0);
      const loss = () => languageModelLoss(parallel.module, ids, targets);
      scope(() => scaler.scale(autocast('float16', loss)).backward());
      const { weight } = parallel.module.layers[0]!.ln1;
      if (overflows && rank === size - 1) noGrad(() => fillInPlace(slice(weight.grad!, 0, 0, 1), Infinity));
      scaler.step(optimizer);
      deepStrictEqual(scaler.hasSkipped(optimizer), overflows);
      scaler.update();
      optimizer.zeroGrad();
    }
    parallel.dispose();
  },

  /** The same tokens as one rank, with a cache, without, and compiled; from weights that were never whole. */
  generation() {
    for (const [name, given] of Object.entries(fewKinds)) {
      const alone = build(given);
      const state = alone.stateDict();
      const model = deferWeights(() => new TransformerLM(given, { device, seed: 8 }));
      model.loadStateDict(state);
      const parallel = parallelize(model, group);
      const prompt = [1, 2, 3];
      const compiled = given === kinds['GPT-2'] ? [{ compile: true }] : [];
      for (const options of [{}, { useCache: false }, ...compiled]) {
        const asked = { ...options, maxNewTokens: 8, seed: 4 };
        deepStrictEqual(generate(model, prompt, asked), generate(alone, prompt, asked), name);
      }
      parallel.dispose();
      alone.dispose();
    }
  },

  /** Built without its weights, a model is never whole on a rank, and has those of its seed. */
  deferred() {
    const large = { ...config, layers: 8, modelDimension: 64, feedForwardDimension: 128 };
    const make = () => new TransformerLM(large, { seed: 4, device });
    const alone = make();
    const expected = valuesOf(alone.namedParameters());
    const bytes = [...alone.parameters()].map(({ byteLength }) => byteLength);
    alone.dispose();
    const before = device.allocatedBytes;
    device.resetPeakMemory();
    const parallel = parallelize(deferWeights(make), group);
    const peak = device.memoryStatistics().peakAllocatedBytes - before;
    const all = bytes.reduce((sum, each) => sum + each, 0);
    const most = all / size + 4 * Math.max(...bytes) + 64 * 64 * large.layers;
    ok(peak <= most, `${peak} bytes, at most ${most} of ${all}`);
    deepStrictEqual(valuesOf(parallel.wholeParameters()), expected);
    parallel.dispose();
  },

  /** Ranks draw other numbers, and what is made again draws the same. */
  async dropout() {
    let first = '';
    const gradients = (['none', 'block'] as const).map((recompute) => {
      const generator = new Generator(20 + rank);
      const attention: AttentionFunction = (q, k, v, settings) => {
        const dropped = dropout(ones(q.shape, { device }), { p: 0.5, generator });
        first ||= dropped.toFlatArray().join();
        return mul(plainAttention(q, k, v, settings), dropped);
      };
      const parallel = parallelize(build(config, { attention, recompute }), group);
      const { ids, targets } = batchOf(0);
      scope(() => languageModelLoss(parallel.module, ids, targets).backward());
      const values = valuesOf(parallel.wholeGradients());
      parallel.dispose();
      return values;
    });
    deepStrictEqual(gradients[1], gradients[0]);
    deepStrictEqual(new Set(await group.allGatherObject(first)).size, size);
  },

  /** A loss in chunks of rows, the last of them shorter, is that of whole logits. */
  chunks() {
    const [rows, features, tokens] = [10, 6, config.vocabularySize];
    const random = (shape: number[], seed: number) =>
      randn(shape, { generator: new Generator(seed), device, dtype: exact, requiresGrad: true });
    const [x, weight] = [random([rows, features], 1), random([tokens, features], 2)];
    const own = tokens / size;
    const vocabulary = new DividedVocabulary(tokens, group, weight);
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
    vocabulary.dispose();
  },

  /** Logits are those of one rank, whoever goes on with them. */
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

  errors() {
    const message = (given: Partial<ModelConfig>) => {
      const model = new TransformerLM({ ...config, ...given }, { device });
      try {
        parallelize(model, group).dispose();
        return null;
      } catch (error) {
        return (error as Error).message;
      }
    };
    throws(() => parallelize(new Linear(2, 2, { device }) as never, group), /takes a TransformerLM, not/);
    throws(() => parallelize(build(config), {} as never), /takes a Mesh or a ProcessGroup, not/);
    if (size === 1) return;
    const parallel = parallelize(build(config), group);
    throws(() => parallelize(parallel.module, group), /is divided already/);
    const ids = (shape: number[], token: number) => full(shape, token, { dtype: 'int64', device });
    const loss = (ids: Tensor) => scope(() => languageModelLoss(parallel.module, ids, ids));
    throws(
      () => loss(ids([1, 7], 0)),
      new RegExp(`have 7 tokens in a sequence, which ${size} tensor ranks cannot`),
    );
    if (device.type === 'cpu')
      for (const token of [24, -1, -100])
        throws(() => loss(ids([1, 8], token)), /id -?\d+ at position 0 is outside/);
    parallel.dispose();
    match(
      message({ heads: 1, modelDimension: 16 })!,
      /heads 1 cannot be divided by \d tensor ranks; take a tensor axis/,
    );
    match(message({ keyValueHeads: 1 })!, /keyValueHeads 1 cannot be divided by/);
    match(message({ feedForwardDimension: 27 })!, /feedForwardDimension 27 cannot be divided by/);
    match(
      message({ vocabularySize: 25 })!,
      /vocabularySize 25 cannot be divided by \d tensor ranks; build the model with (26|28), /,
    );
    const sharded = build(config);
    fullyShard(sharded, group);
    throws(() => parallelize(sharded, group), /call parallelize\(\) first, then fullyShard\(\)/);
  },
};

const chosen = process.argv.slice(3);
for (const [name, run] of Object.entries(scenarios))
  if (chosen.length === 0 || chosen.includes(name)) await run();
group.barrier().wait();
group.dispose();
deepStrictEqual(nccl?.faults() ?? '', '');
console.log('all right');
