import { describe, expect, it } from 'vitest';
import {
  batchObstacle,
  layoutsOf,
  obstacleOf,
  resized,
  sequencesDivided,
  shardedTensor,
  tensorParallel,
} from '../../src/plan/layout.ts';
import { collectiveMs, spanOf } from '../../src/plan/links.ts';
import { linkFits } from '../../src/plan/machine.ts';
import { planStep, plannerOf, type StepPlan } from '../../src/plan/plan-step.ts';
import { parameters, setting, toyLinks, toyMachine } from './toy-machine.ts';

const layoutNamed = (name: string, gpus: number, perNode = 8) =>
  layoutsOf(gpus, perNode).find((layout) => layout.name === name)!;
const planner = plannerOf(toyMachine, toyLinks, { perLayerMs: 0, overFloor: 1, steps: 1 });
const plan = (name: string, gpus: number) => planStep(planner, layoutNamed(name, gpus), setting);

describe('a collective', () => {
  it('takes α, more with the logarithm of its ranks, and what each link carries', () => {
    const within = { ranks: 8, perNode: 8 };
    expect(collectiveMs('allreduce', 1e9, within, toyLinks)).toBeCloseTo(0.03 + 2 * (7 / 8) * 10, 10);
    expect(collectiveMs('allgather', 1e9, within, toyLinks)).toBeCloseTo(0.03 + (7 / 8) * 10, 10);
    expect(collectiveMs('allgather', 1e9, { ranks: 1, perNode: 1 }, toyLinks)).toBe(0);
  });

  it('is bound by the network where its ranks of one node send less together than their links carry', () => {
    // Eight ranks of a node send 80 GB/s to the others, one alone 10.
    expect(collectiveMs('allgather', 1e9, { ranks: 16, perNode: 8 }, toyLinks)).toBeCloseTo(
      0.04 + (15 / 16) * 12.5,
      10,
    );
    expect(collectiveMs('allgather', 1e9, { ranks: 16, perNode: 1 }, toyLinks)).toBeCloseTo(
      0.04 + (15 / 16) * 100,
      10,
    );
  });

  it('between neighbours in a ring takes one link each, and α of two ranks', () => {
    expect(collectiveMs('sendrecv', 1e9, { ranks: 8, perNode: 8 }, toyLinks)).toBeCloseTo(0.01 + 10, 10);
    expect(collectiveMs('sendrecv', 1e9, { ranks: 16, perNode: 8 }, toyLinks)).toBeCloseTo(0.01 + 100, 10);
  });

  it('is fitted by what was measured, op by op', () => {
    const [fit] = linkFits(toyMachine);
    expect(fit).toMatchObject({ ranks: 2 });
    expect(fit!.latencyMs).toBeCloseTo(0.01, 10);
    expect(fit!.busOfOp.allreduce! / 1e9).toBeCloseTo(100, 6);
  });
});

it('neighbours are tensor parallel, then come those that shard, then replicas', () => {
  const joint = layoutNamed('sharded × tensor 2', 64);
  expect(spanOf(joint, 'tensor', toyLinks)).toEqual({ ranks: 2, perNode: 2 });
  expect(spanOf(joint, 'shard', toyLinks)).toEqual({ ranks: 32, perNode: 4 });
  expect(spanOf(layoutNamed('sharded, sequences over 4', 64), 'context', toyLinks)).toEqual({
    ...{ ranks: 4, perNode: 4 },
  });
  const hybrid = layoutNamed('hybrid sharded', 64);
  expect(spanOf(hybrid, 'shard', toyLinks)).toEqual({ ranks: 8, perNode: 8 });
  expect(spanOf(hybrid, 'replicate', toyLinks)).toEqual({ ranks: 8, perNode: 1 });
});

it('a layout grows along the axis that is divided over all devices', () => {
  expect(resized(layoutNamed('hybrid sharded', 64), 128)).toMatchObject({ replicate: 16, shard: 8 });
  expect(resized(layoutNamed('hybrid sharded', 64), 4)).toBeNull();
  expect(resized(layoutNamed('sharded × tensor 2', 64), 8)).toMatchObject({ shard: 4, tensor: 2 });
  expect(resized(layoutNamed('tensor parallel', 4), 2)).toMatchObject({ tensor: 2 });
  expect(resized(layoutNamed('sharded, sequences divided', 4), 16)).toMatchObject({ shard: 16, context: 16 });
  expect(resized(layoutNamed('sharded, sequences over 4', 64), 128)).toMatchObject({
    ...{ shard: 128, context: 4 },
  });
  expect(resized(layoutNamed('sharded, sequences over 4', 64), 2)).toBeNull();
});

describe('a layout is impossible', () => {
  const grouped = { ...setting, shape: { ...setting.shape, heads: 24, keyValueHeads: 6 } };

  it('where neither heads of keys divide the ranks nor ranks the heads', () => {
    expect([2, 3, 6, 12, 24].map((ranks) => obstacleOf(tensorParallel(ranks), evenly(grouped)))).toEqual(
      Array.from({ length: 5 }, () => null),
    );
    expect(obstacleOf(tensorParallel(4), evenly(grouped))).toBe(
      '6 heads of keys and values cannot be divided by 4, nor 4 by them',
    );
    expect(obstacleOf(tensorParallel(48), evenly(grouped))).toBe('24 heads cannot be divided by 48');
  });

  it('where sequences are not two chunks for each rank, or have windows', () => {
    expect(obstacleOf(sequencesDivided(4), setting)).toBeNull();
    expect(obstacleOf(sequencesDivided(8), setting)).toBe(
      'sequences of 8 tokens cannot be divided by 16, two chunks for each of 8',
    );
    const windows = (slidingWindow: number) => ({ ...setting, shape: { ...setting.shape, slidingWindow } });
    expect(obstacleOf(sequencesDivided(2), windows(8))).toBeNull();
    expect(obstacleOf(sequencesDivided(2), windows(7))).toBe(
      'a sliding window of 7 is shorter than the context of 8, and the ring knows none',
    );
    expect(obstacleOf(layoutNamed('fully sharded', 2), { ...windows(7), context: 9 })).toBeNull();
  });

  it('where there are fewer sequences than groups of ranks that share them', () => {
    const one = { ...setting, batch: 1 / 6 };
    expect(batchObstacle(sequencesDivided(6), one)).toBeNull();
    expect(batchObstacle(tensorParallel(6), one)).toBeNull();
    expect(batchObstacle(sequencesDivided(6, 2), one)).toBe('1 whole sequence cannot be divided by 3');
    expect(batchObstacle(shardedTensor(3, 2), { batch: 2 / 6 })).toBe(
      '2 whole sequences cannot be divided by 3',
    );
    expect(batchObstacle(shardedTensor(3, 2), { batch: 0.5 })).toBeNull();
  });
});

/** With a vocabulary and a feed-forward width that up to 48 ranks divide. */
function evenly(grouped: typeof setting): typeof setting {
  return { ...grouped, shape: { ...grouped.shape, vocabularySize: 480, feedForwardDimension: 96 } };
}

describe('the bytes that a rank sends', () => {
  const [n, ring] = [4, 3 / 4];
  const sent = ({ sentBytes }: StepPlan) => sentBytes / parameters;

  it.each([
    ['data parallel', 2 * ring * 4],
    // The reduction, and each parameter from the rank that updated it.
    ['ZeRO-1', 2 * ring * 4 + 4],
    // Gathered twice in bfloat16, reduced and scattered once in float32.
    ['fully sharded', ring * (2 + 2 + 4)],
  ])('of %s, for each parameter', (name, bytes) => expect(sent(plan(name, n))).toBeCloseTo(bytes, 10));

  it('of tensor parallelism are activations: four gathers and scatters for each half of a layer, and sums of a row of numbers', () => {
    const activations = 4 * 2 * 8 * 16 * 2;
    expect(plan('tensor parallel', n).sentBytes).toBeCloseTo(
      // The embedding's two are in float32; three numbers a token for the loss, and a gradient for each norm.
      ring * (activations * (4 * 2 * 2 + 2 + 2 * 2) + 2 * 4 * (3 * 4 * 2 * 8 + 5 * 16)),
      6,
    );
  });
});

describe('a ring of keys and values', () => {
  const n = 4;
  const keys = 2 * 16 * 16 * 2;
  const ring = ({ traffic }: StepPlan) =>
    traffic
      .filter(({ op }) => op === 'sendrecv')
      .map(({ phase, bytes, calls, hides }) => ({ phase, bytes, calls, hides }));
  const stepOf = (changes: Partial<typeof setting>, links = toyLinks) =>
    planStep({ ...planner, links, interference: 0 }, sequencesDivided(n), { ...setting, ...changes });

  it('goes n - 1 times forward and backward, with n times its gradients in float32, the last in the open', () => {
    const [forward, backward] = ['forward', 'backward'].map((phase) => ({
      phase,
      bytes: keys,
      calls: 2 * 3,
      hides: true,
    }));
    const gradients = { phase: 'backward', bytes: 2 * keys };
    expect(ring(stepOf({}))).toEqual([
      ...[forward, backward],
      ...[
        { ...gradients, calls: 2 * 3, hides: true },
        { ...gradients, calls: 2, hides: false },
      ],
    ]);
    expect(ring(stepOf({ recompute: 'block' }))[1]).toEqual({ ...backward, calls: 2 * 2 * 3 });
    // Fewer heads of keys than of queries.
    expect(ring(stepOf({ shape: { ...setting.shape, keyValueHeads: 1 } }))[0]!.bytes).toBe(keys / 4);
  });

  it('hides beside attention, and no longer than that takes', () => {
    const links = (busBytesPerSecond: number) => ({
      ...toyLinks,
      inside: [
        { ranks: 2, latencyMs: 0, busBytesPerSecond, busOfOp: { allgather: 1e30, reducescatter: 1e30 } },
      ],
    });
    const at = (rate: number, context: number) => {
      const step = stepOf({ context }, links(rate));
      const sent = (hides: boolean) =>
        step.traffic.filter((each) => each.hides === hides).reduce((sum, { timeMs }) => sum + timeMs, 0);
      return { ...step, open: sent(false), hidden: sent(true) };
    };
    const fast = at(1e12, 1024);
    expect(fast.exposedMs / fast.open).toBeCloseTo(1, 2);
    const slow = at(1e7, 1024);
    const { forward, backward } = slow.computation.attentionMs;
    expect(forward).toBeGreaterThan(0);
    expect(slow.exposedMs).toBeCloseTo(slow.open + slow.hidden - 0.75 * forward - backward, 3);
  });
});

describe('what communication adds to a step', () => {
  const slow = { ...toyLinks, inside: [{ ranks: 2, latencyMs: 0, busBytesPerSecond: 1e6, busOfOp: {} }] };
  const stepOf = (interference: number, links = toyLinks) =>
    planStep({ ...planner, links, interference }, layoutNamed('data parallel', 2), setting);

  it('is what it slows computation by while it hides, and the first call', () => {
    // One bucket, which can begin only when all is there.
    const { communicationMs, exposedMs } = stepOf(0.5);
    expect(exposedMs).toBeCloseTo(communicationMs, 10);
    const reduction = { calls: 10, hides: true };
    const hidden = planStep(
      { ...planner, interference: 0.25, calibration: { perLayerMs: 100, overFloor: 1, steps: 1 } },
      layoutNamed('data parallel', 2),
      setting,
      reduction,
    );
    expect(hidden.exposedMs).toBeCloseTo(hidden.communicationMs * (0.1 + 0.25 * 0.9), 10);
  });

  it('is all of it where it cannot hide, and what is left where computation ends before', () => {
    const open = planStep(planner, layoutNamed('data parallel', 2), setting, { calls: 3, hides: false });
    expect(open.exposedMs).toBe(open.communicationMs);
    const long = stepOf(0, slow);
    const reduction = { calls: 100, hides: true };
    const left = planStep(
      { ...planner, links: slow, interference: 0 },
      layoutNamed('data parallel', 2),
      setting,
      reduction,
    );
    expect(left.exposedMs).toBeCloseTo(left.communicationMs - left.computation.backwardMs, 6);
    expect(long.isBoundByComputation).toBe(false);
  });
});
