import { parallelize } from '@roofline/collectives';
import { AdamW } from '@roofline/optim';
import { deferWeights } from '@roofline/transformer';
import { expect, it } from 'vitest';
import { FirstPass } from '../../src/benchmarks/ddp/first-pass.ts';
import type { DdpCell } from '../../src/benchmarks/ddp/parameters.ts';
import { builderOf } from '../../src/benchmarks/ddp/rank-model.ts';
import { sequencesDivided, tensorParallel } from '../../src/plan/layout.ts';
import type { Traffic } from '../../src/plan/traffic.ts';
import { trafficOf } from '../../src/plan/traffic.ts';
import { cellOf, plannedStep } from '../fixtures/planned-step.ts';

const ascending = (a: number, b: number) => a - b;
const callsOf = (traffic: readonly Traffic[]) =>
  traffic.flatMap(({ bytes, calls }) => Array.from({ length: calls }, () => bytes)).toSorted(ascending);

const shape = {
  ...{
    vocabularySize: 48,
    modelDimension: 32,
    feedForwardDimension: 64,
    layers: 2,
    heads: 12,
    headDimension: 8,
  },
  keyValueHeads: 4,
};
const small = { shape, context: 24, batch: 1 };

it.each(['none', 'block', 'attention-kept'] as const)(
  'keys and values go around a ring of three as planned, with layers made again: %s',
  async (recompute) => {
    const cell = cellOf('small', { ...small, recompute, mode: 'fsdp-context', worldSize: 3 });
    const planned = trafficOf(sequencesDivided(3), { ...cell, batch: 1 / 3 });
    const ring = callsOf(planned.filter(({ axis }) => axis === 'context'));
    const sizes = new Set(ring);
    for (const rank of [0, 2]) {
      const { bucketBytes } = await plannedStep(cell, rank);
      expect(bucketBytes.filter((bytes) => sizes.has(bytes)).toSorted(ascending)).toEqual(ring);
    }
  },
);

it.each([
  ['none', 1],
  ['query-key-value', 2],
] as const)(
  'gradients of heads that ranks share are summed as planned, with biases: %s',
  async (attentionBias, kinds) => {
    const cell = cellOf('small', {
      ...{ ...small, shape: { ...shape, attentionBias, keyValueHeads: 2 }, mode: 'tensor', worldSize: 4 },
      execution: 'eager',
    });
    const { bucketBytes } = await plannedStep(cell, 3, dividedModel);
    const planned = trafficOf(tensorParallel(4), cell);
    const ofKeys = planned.filter(({ op, calls }) => op === 'allreduce' && calls === shape.layers);
    expect(new Set(ofKeys.map(({ bytes }) => bytes)).size).toBe(kinds);
    expect([...bucketBytes].toSorted(ascending)).toEqual(callsOf(planned));
  },
);

it.each(['block', 'attention-kept'] as const)(
  'divided layers that are made again gather and scatter as planned: %s, eager and compiled',
  async (recompute) => {
    for (const execution of ['eager', 'compiled'] as const) {
      const cell = cellOf('small', {
        ...{ ...small, shape: { ...shape, layers: 3 }, mode: 'tensor', worldSize: 2 },
        ...{ execution, recompute },
      });
      const { bucketBytes } = await plannedStep(cell, 1, dividedModel);
      expect([...bucketBytes].toSorted(ascending)).toEqual(callsOf(trafficOf(tensorParallel(2), cell)));
    }
  },
);

/** As `roofline ddp --mode tensor` has it, but over a group that makes no other ones. */
const dividedModel: NonNullable<Parameters<typeof plannedStep>[2]> = (
  cell: DdpCell,
  settings,
  device,
  group,
) => {
  const model = deferWeights(builderOf(cell, settings, device));
  const divided = parallelize(model, group);
  const [calls, optimizer] = [new FirstPass(device), new AdamW(divided.parameters())];
  return {
    ...{ model, optimizer, copiedBytes: 0, alone: null, divideTokens: null },
    dispose() {
      optimizer.dispose();
      divided.dispose();
    },
    get bucketBytes() {
      return calls.bytes;
    },
    beginPass: () => calls.beginPass(),
    communication: () => calls.communication(),
  };
};
