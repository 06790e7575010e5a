import { deepStrictEqual, ok, rejects, throws } from 'node:assert/strict';
import { autocast, scope } from '@roofline/tensor-core';
import { AdamW, clipGradientNorm } from '@roofline/optim';
import { TransformerLM } from '@roofline/transformer';
import { DistributedDataParallel, Mesh, fullyShard } from '@roofline/collectives';
import { planUnits } from '../../src/parallel/sharded/parameter-unit.ts';
import {
  group,
  rank,
  size,
  Pair,
  Checkpointed,
  type Loss,
  languageLoss,
  toyLoss,
  sgd,
  valuesOf,
  train,
  lossAfterStep,
  averageByUnits,
  close,
  models,
  type AnyModel,
  alike,
  copyParameters,
  sorted,
} from './sharded-training.ts';
import { usesOfShards } from './fully-sharded-uses.ts';

// Fully sharded training against data parallelism on the same ranks, and against one rank with the joined batch. The first
// argument is the place, as `groupOf` takes it, further ones name scenarios; all if there are none.

const chosen = process.argv.slice(3);

const scenarios: Readonly<Record<string, () => void | Promise<void>>> = {
  /** To the last bit, with every way to gather. */
  equality() {
    for (const [name, { make, loss }] of Object.entries(models)) {
      const replica = alike(make);
      const shards = [{}, { reshardAfterForward: false }, { prefetch: false }].map((options) => {
        const model = alike(make);
        copyParameters(model, replica);
        return { model, sharded: fullyShard(model, group, options) };
      });
      const units = planUnits(replica);
      const expected = train(replica as never, loss, sgd(replica), rank, () => averageByUnits(units));
      const parameters = valuesOf(replica.namedParameters());
      for (const { model, sharded } of shards) {
        deepStrictEqual(train(model as never, loss, sgd(sharded), rank), expected, name);
        deepStrictEqual(valuesOf(sharded.wholeParameters()), sorted(parameters, sharded), name);
        sharded.dispose();
      }
      replica.dispose();
    }
  },

  /** Two ranks add two numbers, in whichever order. */
  'data-parallel'() {
    for (const { make, loss } of Object.values(models)) {
      const [model, replica, alone] = [alike(make), alike(make), alike(make)];
      copyParameters(replica, model);
      copyParameters(alone, model);
      const parallel = new DistributedDataParallel(replica, group);
      const sharded = fullyShard(model, group);
      train(model as never, loss, sgd(sharded), rank);
      train(replica as never, loss, sgd(replica), rank);
      train(alone as never, loss, sgd(alone), null);
      const [ours, theirs, one] = [
        valuesOf(sharded.wholeParameters()),
        sorted(valuesOf(replica.namedParameters()), sharded),
        sorted(valuesOf(alone.namedParameters()), sharded),
      ];
      if (size <= 2) deepStrictEqual(ours, theirs);
      else close('data parallel', ours, theirs, 1e-6);
      close('one rank', ours, one, 1e-5);
      parallel.dispose();
      sharded.dispose();
    }
  },

  /** Two nodes of two: sharded within one, replicated across. */
  async hybrid() {
    if (size !== 4) return;
    using mesh = await Mesh.create(group, { replicate: 2, shard: 2 });
    deepStrictEqual(mesh.along('shard').ranks, rank < 2 ? [0, 1] : [2, 3]);
    deepStrictEqual(mesh.along('replicate').ranks, [rank % 2, 2 + (rank % 2)]);
    throws(
      () => mesh.along('tensor' as never),
      /there is no axis the text "tensor"; there are replicate, shard/,
    );
    await rejects(Mesh.create(group, { shard: 3 }), /are of 3 ranks, and the group has 4/);
    const { make, loss } = models.language;
    const [model, alone] = [alike(make), alike(make)];
    copyParameters(alone, model);
    const sharded = fullyShard(model, mesh);
    const elements = [...sharded.parameters()].reduce((sum, { size }) => sum + size, 0);
    const all = [...alone.parameters()].reduce((sum, { size }) => sum + size, 0);
    ok(Math.abs(elements / all - 1 / 2) < 0.1, `${elements} of ${all}`);
    train(model as never, loss, sgd(sharded), rank);
    train(alone as never, loss, sgd(alone), null);
    close(
      'hybrid',
      valuesOf(sharded.wholeParameters()),
      sorted(valuesOf(alone.namedParameters()), sharded),
      1e-5,
    );
    sharded.dispose();
  },

  /** A pass that no backward pass follows leaves the next one nothing of the parameters before a step; tied, two units are one. */
  'forward-alone'() {
    const cases = { toy: models.toy, tied: models.tied, pair: { ...models.toy, make: () => new Pair() } };
    for (const [name, { make, loss }] of Object.entries(cases))
      for (const options of [{}, { reshardAfterForward: false }, { prefetch: false }]) {
        const pair = [alike(make), alike(make)] as const;
        copyParameters(pair[1], pair[0]);
        const [first, second] = pair.map((model, i) => {
          using sharded = fullyShard(model, group, options);
          return lossAfterStep(model, loss as Loss<AnyModel>, sgd(sharded), i === 1);
        });
        deepStrictEqual(second, first, `${name} ${JSON.stringify(options)}`);
      }
  },

  /** Blocks that are calculated again in the backward pass. */
  checkpointed() {
    const [model, replica] = [
      alike(() => new Checkpointed()),
      alike(() => new Checkpointed()),
    ] as Checkpointed[];
    copyParameters(replica!, model!);
    const units = planUnits(replica!);
    const sharded = fullyShard(model!, group);
    train(model!, toyLoss as never, sgd(sharded), rank);
    train(replica!, toyLoss as never, sgd(replica!), rank, () => averageByUnits(units));
    deepStrictEqual(
      valuesOf(sharded.wholeParameters()),
      sorted(valuesOf(replica!.namedParameters()), sharded),
    );
    sharded.dispose();
  },

  /** AdamW with tied weights, ten steps, and clipping by the norm over all ranks. */
  optimizer() {
    for (const maxNorm of [null, 0.05]) {
      const [model, replica] = [alike(models.tied.make), alike(models.tied.make)] as TransformerLM[];
      copyParameters(replica!, model!);
      const parallel = new DistributedDataParallel(replica!, group);
      const sharded = fullyShard(model!, group);
      const options = { learningRate: 1e-3, weightDecay: 0.1 };
      const [ours, theirs] = [
        new AdamW(sharded.parameters(), options),
        new AdamW(replica!.parameters(), options),
      ];
      for (let step = 0; step < 10; step++)
        scope(() => {
          languageLoss(model!, step, rank).backward();
          languageLoss(replica!, step, rank).backward();
          if (maxNorm !== null) {
            const norm = clipGradientNorm(sharded.parameters(), maxNorm, { ranks: sharded.ranks }).item();
            const expected = clipGradientNorm(replica!.parameters(), maxNorm).item();
            ok(expected > maxNorm && Math.abs(norm / expected - 1) < 1e-5, `${norm} ${expected}`);
          }
          for (const optimizer of [ours, theirs]) {
            optimizer.step();
            optimizer.zeroGrad();
          }
        });
      const expected = sorted(valuesOf(replica!.namedParameters()), sharded);
      close(
        'AdamW',
        valuesOf(sharded.wholeParameters()),
        expected,
        maxNorm === null && size <= 2 ? 1e-7 : 2e-5,
      );
      parallel.dispose();
      sharded.dispose();
    }
  },

  /** In float16 within 1e-4 of data parallelism in autocast to it. */
  float16() {
    for (const { make, loss } of [models.toy, models.language]) {
      const [model, replica] = [alike(make), alike(make)];
      copyParameters(replica, model);
      const parallel = new DistributedDataParallel(replica, group);
      const sharded = fullyShard(model, group, { computeDtype: 'float16' });
      const low: Loss<never> = (it, step, of) => autocast('float16', () => loss(it, step, of));
      train(model as never, low, sgd(sharded, 0.01), rank);
      train(replica as never, low, sgd(replica, 0.01), rank);
      close(
        'float16',
        valuesOf(sharded.wholeParameters()),
        sorted(valuesOf(replica.namedParameters()), sharded),
        1e-4,
      );
      parallel.dispose();
      sharded.dispose();
    }
  },

  ...usesOfShards,
};

for (const [name, run] of Object.entries(scenarios))
  if (chosen.length === 0 || chosen.includes(name)) await run();
group.dispose();
console.log('all right');
