import { deepStrictEqual, match, ok, throws } from 'node:assert/strict';
import {
  Generator,
  type Tensor,
  autocast,
  dropout,
  fillInPlace,
  full,
  mul,
  noGrad,
  observeOps,
  ones,
  scope,
  slice,
} from '@roofline/tensor-core';
import { AdamW, GradientScaler } from '@roofline/optim';
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
import { fullyShard, parallelize } from '@roofline/collectives';
import {
  batchOf,
  build,
  config,
  device,
  fewKinds,
  group,
  kinds,
  rank,
  size,
  valuesOf,
} from './tensor-parallel-training.ts';

/** What a program does with divided layers besides training them: see tensor-parallel.ts, which runs these scenarios. */
export const usesOfDividedLayers: Readonly<Record<string, () => void | Promise<void>>> = {
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
    if (size === 4)
      match(
        message({ heads: 12, headDimension: 4, keyValueHeads: 3 })!,
        /keyValueHeads 3 cannot be divided by 4 tensor ranks; take a tensor axis that divides it, 3 say/,
      );
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
