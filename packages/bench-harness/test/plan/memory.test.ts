import { parameterShapes } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { dataParallel, layoutsOf, ranksOf, sequencesDivided, tensorParallel } from '../../src/plan/layout.ts';
import { memoryOf } from '../../src/plan/memory.ts';
import { planStep, plannerOf } from '../../src/plan/plan-step.ts';
import { parameterUnits } from '../../src/plan/setting.ts';
import { wholeStepWork } from '../../src/plan/step-work.ts';
import { families } from '../../../transformer/test/model/families.ts';
import { parameters, setting, shape, toyLinks, toyMachine } from './toy-machine.ts';

const layoutNamed = (name: string, gpus: number, perNode = gpus) =>
  layoutsOf(gpus, perNode).find((layout) => layout.name === name)!;

it('counts parameters and FLOPs as the model does', async () => {
  const { costOf, countParameters, presets } = await import('@roofline/transformer');
  const context = 16;
  expect(parameterUnits({ shape, context }).total).toBe(parameters);
  for (const config of [...Object.values(presets), ...Object.values(families)]) {
    const { contextLength: _, ...model } = config;
    const held = { ...config, contextLength: context };
    expect(parameterUnits({ shape: model, context }).total).toBe(countParameters(held));
    const step = { ...setting, shape: model, context, batch: 2, attention: 'plain' } as const;
    expect(wholeStepWork(step).modelFlops).toBe(costOf(held, { batch: 2, context }).stepFlops);
  }
});

it.each(Object.entries(families))(
  'gradients of replicas stay in buckets, and not where each parameter has a call of its own: %s',
  (_, { contextLength: __, ...model }) => {
    const asked = { ...setting, shape: model, dtype: 'float32' } as const;
    const machine = {
      ...toyMachine,
      ceilings: { ...toyMachine.ceilings, matmulFlopsPerSecond: { float32: 1 } },
    };
    const planner = plannerOf(machine, toyLinks, { perLayerMs: 0, overFloor: 1, steps: 1 });
    const peakOf = (ranks: number, calls: number) =>
      planStep(planner, dataParallel(ranks), asked, { calls, hides: false }).memory.peak;
    const tensors = [...parameterShapes({ ...model, contextLength: setting.context })].length;
    const { weights, moments, activations, logits, gradients } = memoryOf(dataParallel(2), asked);
    const passing = activations + logits;
    expect(peakOf(2, tensors)).toBe(weights + moments + Math.max(gradients, passing));
    expect(peakOf(2, tensors - 1)).toBe(weights + moments + gradients + passing);
    // One rank alone reduces nothing.
    expect(peakOf(1, 1)).toBe(peakOf(2, tensors));
  },
);

describe("ZeRO's formulas, of four ranks", () => {
  const held = (name: string, execution: 'eager' | 'compiled' = 'eager') =>
    memoryOf(layoutNamed(name, 4), { ...setting, execution });

  it.each([
    // Bytes a parameter: float32 weights, bfloat16 copies, gradients, two moments.
    ['data parallel', [4, 2, 4, 8]],
    ['ZeRO-1', [4, 2, 4, 8 / 4]],
    ['fully sharded', [4 / 4, 0, 4 / 4, 8 / 4]],
    ['tensor parallel', [4 / 4, 2 / 4, 4 / 4, 8 / 4]],
  ])('%s', (name, perParameter) => {
    const { weights, casts, gradients, moments } = held(name);
    expect([weights, casts, gradients, moments].map((bytes) => bytes / parameters)).toEqual(perParameter);
  });

  it('has two neighbouring units whole where parameters are sharded, in bfloat16 and as float32 gradients', () => {
    expect(held('fully sharded').buffers).toBe((2 + 4) * (2592 + 16_016));
    expect(held('data parallel').buffers).toBe(0);
  });

  it('has two layers whole where these have more than the ends, and the larger end beside a layer where not', () => {
    const buffersOf = (changes: Partial<typeof setting.shape>) =>
      memoryOf(layoutNamed('fully sharded', 4), {
        ...{ ...setting, execution: 'eager', shape: { ...shape, ...changes } },
      }).buffers / 6;
    const [layer, head] = [2592, 2 * 16];
    expect(buffersOf({ vocabularySize: 1 })).toBe(2 * layer);
    expect(buffersOf({ vocabularySize: 1, layers: 1 })).toBe(layer + head);
    // The embedding has a vector for each of eight positions, and is larger than the head.
    expect(buffersOf({ positions: 'learned' })).toBe(layer + 16_000 + 8 * 16);
  });

  it('has gradients beside activations where sharded ones are kept, or updated by units', () => {
    for (const execution of ['eager', 'compiled'] as const) {
      const asked = { ...setting, execution };
      const { weights, moments, gradients, buffers, activations, logits, peak } = memoryOf(
        layoutNamed('fully sharded', 4),
        asked,
      );
      expect(peak).toBe(weights + moments + gradients + buffers + activations + logits);
      if (execution === 'compiled')
        expect(memoryOf(layoutNamed('fully sharded', 4), asked, false).peak).toBe(peak);
    }
  });

  it('has the gradients of one layer at a time where a program updates sharded parameters as they come', () => {
    const { gradients, buffers, activations, peak, weights, moments, logits } = held(
      'fully sharded',
      'compiled',
    );
    expect(gradients).toBe((4 * 2592) / 4);
    expect(buffers).toBe((2 * 2 + 4) * 2592);
    expect(peak).toBe(weights + moments + gradients + buffers + activations + logits);
    // Both norms read what is in bfloat16.
    expect(held('data parallel', 'compiled').activations - activations).toBe(16 * 2 * 2 * 16 * 2);
  });

  it('has the heads of keys and values that ranks share once for each rank', () => {
    const grouped = { ...setting, shape: { ...shape, keyValueHeads: 2 } };
    const ofKeys = 2 * 2 * 8 * 16;
    expect(parameterUnits(grouped).total).toBe(parameters - ofKeys);
    const [two, four] = [2, 4].map((ranks) => memoryOf(tensorParallel(ranks), grouped));
    expect(two!.weights).toBe((4 * (parameters - ofKeys)) / 2);
    expect(four).toEqual(memoryOf(tensorParallel(4), setting));
  });

  it('divides both by sharding and by tensor parallelism together', () => {
    const layout = layoutNamed('sharded × tensor 2', 8, 8);
    expect(ranksOf(layout)).toBe(8);
    const { weights, gradients, buffers } = memoryOf(layout, setting);
    expect(weights).toBe((4 * parameters) / 8);
    expect(gradients).toBe((4 * 2592) / 8);
    // What each of two ranks has of a layer, and both norms' outputs of all tokens of both.
    expect(buffers).toBe(((2 * 2 + 4) * 2592) / 2 + 2 * (2 * 16) * 16 * 2);
  });
});

describe('activations', () => {
  const [tokens, d, ff, heads] = [16, 16, 32, 4];
  const layer = (6 * d + 3 * ff) * 2 + 2 * d * 4 + heads * 4;
  const end = d * (4 + 2);
  const alone = layoutNamed('one GPU', 1);
  const of = (changes: Partial<typeof setting>) => memoryOf(alone, { ...setting, ...changes });

  it('are what each layer saves, and the end', () => {
    expect(of({}).activations).toBe(tokens * (2 * layer + end));
    expect(of({}).logits).toBe(tokens * 1000 * (2 + 4));
    expect(of({ attention: 'plain' }).activations).toBe(
      tokens * (2 * (layer - heads * 4 + heads * 8 * 2) + end),
    );
  });

  it('are what tensor parallel ranks have gathered, of all their tokens', () => {
    const { activations } = memoryOf(tensorParallel(2), setting);
    expect(activations - of({}).activations).toBe(tokens * 2 * (2 * 2 * d + d));
  });

  it('are queries and keys before their norms, too, where they have any', () => {
    const normed = of({ shape: { ...shape, keyValueHeads: 2, queryKeyNorm: true } });
    const plain = of({ shape: { ...shape, keyValueHeads: 2 } });
    expect(normed.activations - plain.activations).toBe(tokens * 2 * 2 * (d + d / 2));
  });

  it('have float32 parameters as they are, and logits in chunks that take no more than so much', () => {
    expect(of({ dtype: 'float32' }).casts).toBe(0);
    expect(of({ logits: 'chunked' }).logits).toBe(of({}).logits);
    const wide = { shape: { ...shape, vocabularySize: 2 ** 24 } };
    expect([of({ ...wide, logits: 'chunked' }).logits, of(wide).logits]).toEqual([2 ** 30, 6 * 2 ** 28]);
  });

  it('are the inputs and one layer whole where layers are made again', () => {
    expect(of({ recompute: 'block' }).activations).toBe(tokens * (2 * 4 * d + layer + end));
    const kept = 4 * d + 2 * d + 4 * heads;
    expect(of({ recompute: 'attention-kept' }).activations).toBe(tokens * (2 * kept + layer + end));
  });

  it('of a ring are two numbers for each row in the place of one, which attention keeps, too', () => {
    const sharded = layoutNamed('fully sharded', 4);
    const [whole, ring] = [sharded, sequencesDivided(4)].map(
      (layout) => (recompute: typeof setting.recompute) =>
        memoryOf(layout, { ...setting, recompute }).activations / tokens,
    );
    expect(ring!('none') - whole!('none')).toBe(2 * heads * 4);
    expect(ring!('block') - whole!('block')).toBe(heads * 4);
    expect(ring!('attention-kept') - whole!('attention-kept')).toBe((2 + 1) * heads * 4);
  });

  it('of a ring have gradients besides, once those of the feed-forward network are gone', () => {
    const [whole, ring] = [layoutNamed('fully sharded', 4), sequencesDivided(4)].map((layout) =>
      memoryOf(layout, setting),
    );
    const gradients = tokens * (d * 2 + 4 * 3 * 3 * d - 3 * ff * 2);
    expect(ring!.buffers - whole!.buffers).toBe(gradients);
    // Less than logits, which are gone by then.
    expect(ring!.peak - whole!.peak).toBe(ring!.activations - whole!.activations);
    const narrow = { ...setting, shape: { ...shape, vocabularySize: 1 } };
    const [before, after] = [layoutNamed('fully sharded', 4), sequencesDivided(4)].map((layout) =>
      memoryOf(layout, narrow),
    );
    expect(after!.peak - before!.peak).toBe(
      after!.activations - before!.activations + gradients - before!.logits,
    );
  });

  it('of a ring of separate ops are no weights, which come one part at a time as attention is made again', () => {
    const ringOf = (changes: Partial<typeof setting>) =>
      memoryOf(sequencesDivided(4), { ...setting, ...changes });
    const [flash, plain] = [ringOf({}), ringOf({ attention: 'plain' })];
    expect(plain.activations).toBe(flash.activations);
    // A weight and its gradient of each pair with a quarter of the keys.
    expect(plain.buffers - flash.buffers).toBe(tokens * 4 * 2 * heads * (8 / 4));
    // The feed-forward network gives back more than that.
    const wide = { shape: { ...shape, feedForwardDimension: 1024 } };
    expect(ringOf(wide).buffers).toBe(
      memoryOf(layoutNamed('fully sharded', 4), { ...setting, ...wide }).buffers,
    );
  });

  it('go while gradients come, unless these stay in buckets', () => {
    const { weights, moments, casts, activations, logits, gradients, peak } = of({});
    expect(peak).toBe(weights + moments + Math.max(gradients, casts + activations + logits));
    const replicas = memoryOf(layoutNamed('data parallel', 2), setting);
    expect(replicas.peak).toBe(
      peak - Math.max(gradients, casts + activations + logits) + gradients + casts + activations + logits,
    );
  });
});
