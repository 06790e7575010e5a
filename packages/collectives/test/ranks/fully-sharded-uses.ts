import { deepStrictEqual, match, ok, throws } from 'node:assert/strict';
import { add, fillInPlace, keep, mean, mul, noGrad, ones, scope, slice } from '@roofline/tensor-core';
import { AdamW, GradientScaler } from '@roofline/optim';
import { Linear, TransformerLM, deferWeights, generate } from '@roofline/transformer';
import { DistributedDataParallel, type FullyShardOptions, fullyShard } from '@roofline/collectives';
import {
  group,
  device,
  rank,
  size,
  config,
  Toy,
  Spare,
  type Loss,
  languageLoss,
  toyLoss,
  type Trainable,
  sgd,
  numbers,
  valuesOf,
  train,
  close,
  models,
  alike,
  copyParameters,
  sorted,
} from './sharded-training.ts';

/** What a program does with sharded parameters besides training them: see fully-sharded.ts, which runs these scenarios. */
export const usesOfShards: Readonly<Record<string, () => void | Promise<void>>> = {
  /** At most two blocks are whole at once, and none between steps. */
  memory() {
    const model = new TransformerLM({ ...config, layers: 5 }, { seed: 3, device });
    const sharded = fullyShard(model, group);
    const wholeBlocks = () => model.layers.filter(({ ffn }) => !ffn.w1.weight.storage.isAway).length;
    const seen: number[] = [];
    for (const [, whole] of model.namedParameters())
      whole.onGradientAccumulated(() => void seen.push(wholeBlocks()));
    for (const layer of model.layers) {
      const { forward } = layer;
      layer.forward = (...inputs) => {
        const output = forward(...inputs);
        seen.push(wholeBlocks());
        return output;
      };
    }
    const optimizer = sgd(sharded);
    train(model, languageLoss, optimizer, rank, () => deepStrictEqual(wholeBlocks(), 0));
    ok(seen.length > 100 && Math.max(...seen) <= 2, `${Math.max(...seen)} blocks whole`);
    const parts = [...sharded.parameters()].reduce((bytes, { byteLength }) => bytes + byteLength, 0);
    const all = [...model.parameters()].reduce((bytes, { byteLength }) => bytes + byteLength, 0);
    ok(parts < all / size + 16 * 64 * (model.layers.length + 3), `${parts} of ${all} bytes`);
    sharded.dispose();
  },

  /** Built without its weights, a model is never whole on a rank, and has those of its seed. */
  deferred() {
    const large = { ...config, layers: 12, modelDimension: 64, feedForwardDimension: 128 };
    const build = () => new TransformerLM(large, { seed: 4, device });
    const alone = build();
    const expected = valuesOf(alone.namedParameters());
    const all = [...alone.parameters()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    const block = [...alone.layers[0]!.parameters()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    alone.dispose();
    const before = device.allocatedBytes;
    device.resetPeakMemory();
    const sharded = fullyShard(deferWeights(build), group);
    const { peakAllocatedBytes } = device.memoryStatistics();
    const most = all / size + 4 * block;
    ok(peakAllocatedBytes - before < most, `${peakAllocatedBytes - before} bytes, at most ${most} of ${all}`);
    deepStrictEqual(valuesOf(sharded.wholeParameters()), expected);
    sharded.dispose();
  },

  /** Gradients have the parameters' shapes, in float32, and are the same on all ranks. */
  gradients() {
    const model = alike(models.language.make) as TransformerLM;
    const shapes = Object.fromEntries([...model.namedParameters()].map(([name, { shape }]) => [name, shape]));
    const sharded = fullyShard(model, group, { computeDtype: 'bfloat16' });
    scope(() => languageLoss(model, 0, rank).backward());
    for (const [name, gradient] of sharded.wholeGradients()) {
      deepStrictEqual([gradient!.shape, gradient!.dtype], [shapes[name], 'float32']);
      const first = scope(() => {
        const copied = keep(mul(gradient!, 1));
        noGrad(() => group.broadcast(copied, 0).wait());
        return copied;
      });
      deepStrictEqual(numbers(gradient!), numbers(first), name);
      ok(
        numbers(first).some((value) => value !== 0),
        name,
      );
      first.dispose();
    }
    sharded.dispose();
  },

  /** Frozen parameters stay, and may be trained later. */
  frozen() {
    const [model, replica] = [alike(models.language.make), alike(models.language.make)] as TransformerLM[];
    copyParameters(replica!, model!);
    const freeze = (it: TransformerLM, requiresGrad: boolean) => {
      it.tokenEmbeddings.weight.requiresGrad_(requiresGrad);
      for (const parameter of it.layers[1]!.parameters()) parameter.requiresGrad_(requiresGrad);
      it.layers[2]!.ffn.w2.weight.requiresGrad_(requiresGrad);
    };
    freeze(model!, false);
    freeze(replica!, false);
    const parallel = new DistributedDataParallel(replica!, group);
    const sharded = fullyShard(model!, group);
    train(model!, languageLoss, sgd(sharded), rank);
    train(replica!, languageLoss, sgd(replica!), rank);
    parallel.dispose();
    const compare = (bound: number) =>
      close(
        'frozen',
        valuesOf(sharded.wholeParameters()),
        sorted(valuesOf(replica!.namedParameters()), sharded),
        bound,
      );
    compare(size <= 2 ? 0 : 1e-6);
    freeze(model!, true);
    freeze(replica!, true);
    using again = new DistributedDataParallel(replica!, group);
    train(model!, languageLoss, sgd(sharded), rank);
    train(replica!, languageLoss, sgd(again.module), rank);
    compare(size <= 2 ? 0 : 1e-6);
    sharded.dispose();
  },

  /** Parameters that some ranks, or none, use in a pass. */
  unused() {
    const loss: Loss<Spare> = (model, step, of) => {
      const uses = step === 0 ? false : step === 1 ? rank === 0 : true;
      const value = toyLoss(model, step, of);
      // All ranks run the same modules, whose gradients may stay out.
      const spare = mean(model.spare.forward(ones([2, 6], { device })));
      return add(value, uses ? spare : spare.detach());
    };
    const [model, replica] = [alike(() => new Spare()), alike(() => new Spare())] as Spare[];
    copyParameters(replica!, model!);
    const options = { findUnusedParameters: true };
    using parallel = new DistributedDataParallel(replica!, group, options);
    const sharded = fullyShard(model!, group, options);
    const adamW = (it: Trainable) => new AdamW(it.parameters(), { learningRate: 0.01 });
    train(model!, loss, adamW(sharded), rank);
    train(parallel.module, loss, adamW(replica!), rank);
    const theirs = sorted(valuesOf(replica!.namedParameters()), sharded);
    close('unused', valuesOf(sharded.wholeParameters()), theirs, size <= 2 ? 0 : 1e-6);
    sharded.dispose();
    const strict = fullyShard(
      alike(() => new Spare()),
      group,
    );
    throws(
      () => scope(() => toyLoss(strict.module as Toy, 0, rank).backward()),
      /fullyShard: on rank \d the backward pass brought no gradient to spare\.weight; use them in the loss/,
    );
    strict.dispose();
  },

  /** Several passes before a step, and several uses of a block in one, add up. */
  accumulation() {
    const [model, alone] = [alike(models.tied.make), alike(models.tied.make)] as TransformerLM[];
    copyParameters(alone!, model!);
    const sharded = fullyShard(model!, group);
    const twice = (it: TransformerLM, of: number | null) => {
      for (const step of [0, 1]) scope(() => languageLoss(it, step, of).backward());
      scope(() => add(languageLoss(it, 2, of), languageLoss(it, 3, of)).backward());
    };
    twice(model!, rank);
    twice(alone!, null);
    const expected = Object.fromEntries(
      [...alone!.namedParameters()].map(([name, { grad }]) => [name, numbers(grad!)]),
    );
    close('accumulation', valuesOf(sharded.wholeGradients()), sorted(expected, sharded), 1e-5);
    sharded.dispose();
  },

  /** An overflow on one rank skips the step of all. */
  scaler() {
    const model = alike(models.language.make) as TransformerLM;
    const sharded = fullyShard(model, group, { computeDtype: 'float16' });
    const optimizer = sgd(sharded);
    const scaler = new GradientScaler({ initialScale: 1024, ranks: sharded.ranks });
    const before = valuesOf(sharded.wholeParameters());
    for (const overflows of [true, false]) {
      scope(() => scaler.scale(languageLoss(model, 0, rank)).backward());
      const [first] = sharded.parameters();
      if (overflows && rank === size - 1) noGrad(() => fillInPlace(slice(first!.grad!, 0, 0, 1), Infinity));
      scaler.step(optimizer);
      deepStrictEqual(scaler.hasSkipped(optimizer), overflows);
      scaler.update();
      optimizer.zeroGrad();
      const after = valuesOf(sharded.wholeParameters());
      if (overflows) deepStrictEqual(after, before);
      else ok(JSON.stringify(after) !== JSON.stringify(before));
    }
    deepStrictEqual(scaler.currentScale, 512);
    sharded.dispose();
  },

  /** Forward passes alone, and what the model itself gives. */
  generation() {
    const [model, alone] = [alike(models.tied.make), alike(models.tied.make)] as TransformerLM[];
    copyParameters(alone!, model!);
    const state = valuesOf(model!.namedParameters());
    const sharded = fullyShard(model!, group);
    const options = { maxNewTokens: 6 };
    deepStrictEqual(generate(model!, [1, 2, 3], options), generate(alone!, [1, 2, 3], options));
    ok(model!.layers.every(({ ffn }) => ffn.w1.weight.storage.isAway));
    deepStrictEqual(valuesOf(model!.namedParameters()), state);
    sharded.dispose();
  },

  errors() {
    const message = (options: unknown, model: unknown = alike(models.toy.make)) => {
      try {
        fullyShard(model as Toy, group, options as FullyShardOptions);
        return null;
      } catch (error) {
        return (error as Error).message;
      }
    };
    match(
      message({ computeDtype: 'float64' })!,
      /computeDtype is one of float32, bfloat16, float16, not the text "float64"/,
    );
    match(message({}, { forward() {} })!, /fullyShard: takes a module with children, not/);
    match(
      message({}, new Linear(2, 2, { device }))!,
      /"weight" belongs to the model itself; give it to a child/,
    );
    match(
      message({}, new TransformerLM(config, { device, dtype: 'float16' }))!,
      /is float16; shards are of float32/,
    );
    const model = alike(models.toy.make);
    const sharded = fullyShard(model, group);
    match(message({}, model)!, /the model is sharded already/);
    sharded.dispose();
    if (size === 1) return;
    match(message({ prefetch: rank === 0 })!, /rank \d has the options .*; give all ranks the same/);
  },
};
