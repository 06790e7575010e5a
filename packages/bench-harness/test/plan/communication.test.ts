import { defaultBucketBytes } from '@roofline/collectives';
import { describe, expect, it } from 'vitest';
import {
  type Axis,
  dataParallel,
  fullySharded,
  hybridSharded,
  type Layout,
  layoutsOf,
  sequencesDivided,
  shardedTensor,
  tensorParallel,
  zero1,
} from '../../src/plan/layout.ts';
import { collectiveMs, spanOf } from '../../src/plan/links.ts';
import { linkFits } from '../../src/plan/machine.ts';
import { planStep, plannerOf, type StepPlan } from '../../src/plan/plan-step.ts';
import { trafficOf } from '../../src/plan/traffic.ts';
import { parameters, setting, shape, toyLinks, toyMachine } from './toy-machine.ts';

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

  it('is fitted by the median of the ops where it was not measured itself', () => {
    const ops = ['reducescatter', 'allreduce', 'allgather'] as const;
    const collectives = ops.flatMap((op, i) =>
      toyMachine.collectives.map((call) => ({ ...call, op, timeMs: [4, 1, 2][i]! * call.timeMs })),
    );
    const [fit] = linkFits({ ...toyMachine, collectives });
    // All-reduces send all bytes, the others half of them.
    expect(ops.map((op) => fit!.busOfOp[op]! / 1e9)).toEqual(
      [12.5, 100, 25].map((bus) => expect.closeTo(bus, 6)),
    );
    expect(fit!.busBytesPerSecond / 1e9).toBeCloseTo(25, 6);
    expect(fit!.latencyMs).toBeCloseTo(0.02, 10);
  });

  it('takes what was measured of the most ranks that are not more than its own, else of the fewest', () => {
    const measured = [8, 2, 4].flatMap((ranks) =>
      toyMachine.collectives.map((call) => ({ ...call, ranks, timeMs: ranks * call.timeMs })),
    );
    const inside = linkFits({ ...toyMachine, collectives: measured });
    expect(inside.map(({ ranks }) => ranks)).toEqual([2, 4, 8]);
    const links = { ...toyLinks, inside, outsideBytesPerSecond: null };
    const latencyOf = (ranks: number, of = links) =>
      collectiveMs('allreduce', 0, { ranks, perNode: ranks }, of) / Math.log2(ranks);
    const perDoubling = inside.map(({ latencyMs, ranks }) => latencyMs / Math.log2(ranks));
    expect([2, 3, 4, 7, 8, 64].map((ranks) => latencyOf(ranks))).toEqual(
      [0, 0, 1, 1, 2, 2].map((place) => expect.closeTo(perDoubling[place]!, 12)),
    );
    expect(latencyOf(2, { ...links, inside: inside.slice(1) })).toBeCloseTo(perDoubling[1]!, 12);
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
  // Three and three have room in a node of eight.
  expect(spanOf(shardedTensor(4, 3), 'shard', toyLinks)).toEqual({ ranks: 4, perNode: 2 });
  const ringOfPairs = { ...sequencesDivided(8), tensor: 2 };
  expect(spanOf(ringOfPairs, 'context', toyLinks)).toEqual({ ranks: 8, perNode: 4 });
  // The 16 ranks of a replica fill two nodes, so that those that hold the same shard are on four different ones.
  expect(spanOf(hybridSharded(4, 16), 'replicate', toyLinks)).toEqual({ ranks: 4, perNode: 1 });
});

describe('the bytes that a rank sends', () => {
  const [n, ring] = [4, 3 / 4];
  const sent = ({ sentBytes }: StepPlan) => sentBytes / parameters;

  it.each([
    ['data parallel', 2 * ring * 4],
    // The reduction, and each parameter from the rank that updated it.
    ['ZeRO-1', 2 * ring * 4 + 4],
    // Gathered twice in bfloat16, reduced and scattered once in float32.
    ['fully sharded', ring * (2 + 2 + 4)],
    // Among two that share parameters, and the half of a replica's gradients between two of these.
    ['hybrid sharded', (1 / 2) * (2 + 2 + 4) + (2 * (1 / 2) * 4) / 2],
  ])('of %s, for each parameter', (name, bytes) =>
    expect(sent(planStep(planner, layoutNamed(name, n, 2), setting))).toBeCloseTo(bytes, 10),
  );

  it('of tensor parallelism are activations: four gathers and scatters for each half of a layer, and sums of a row of numbers', () => {
    const activations = 4 * 2 * 8 * 16 * 2;
    expect(plan('tensor parallel', n).sentBytes).toBeCloseTo(
      // The embedding's two are in float32; three numbers a token for the loss, and a gradient for each norm.
      ring * (activations * (4 * 2 * 2 + 2 + 2 * 2) + 2 * 4 * (3 * 4 * 2 * 8 + 5 * 16)),
      6,
    );
  });
});

describe('the calls of a step', () => {
  const callsOf =
    (layout: Layout, asked = setting) =>
    (axis: Axis) =>
      trafficOf(layout, asked).filter((each) => each.axis === axis);

  it('of sharded parameters are two gathers and one reduction a unit: the embedding, each layer, and the head', () => {
    const calls = callsOf(fullySharded(4))('shard').map((each) => [each.op, each.phase, each.calls]);
    const units = (count: number) => [
      ['allgather', 'forward', count],
      ['allgather', 'backward', count],
      ['reducescatter', 'backward', count],
    ];
    expect(calls).toEqual([...units(2), ...units(2)]);
  });

  it('of replicas are the buckets of DistributedDataParallel, the last of which need not be full', () => {
    const bucket = defaultBucketBytes(0);
    // So many layers of 2592 parameters that less than a bucket is left of the third.
    const deep = { ...setting, shape: { ...shape, layers: 5500 } };
    const [gradients] = callsOf(dataParallel(2), deep)('replicate');
    const bytes = 4 * (parameters + 5498 * 2592);
    expect(bytes / bucket).toBeGreaterThan(2);
    expect(bytes / bucket).toBeLessThan(2.5);
    expect(gradients).toMatchObject({ calls: 3, bytes: bytes / 3, hides: true });
  });

  it('carry the keys that tensor parallel ranks share once for each of them', () => {
    const grouped = { ...setting, shape: { ...shape, keyValueHeads: 2 } };
    const layout = { ...shardedTensor(2, 4), replicate: 2 };
    for (const axis of ['shard', 'replicate'] as const)
      expect(callsOf(layout, grouped)(axis)).toEqual(callsOf(layout)(axis));
  });

  it('of divided layers wait for one another, but for the sums of the gradients of norms', () => {
    const calls = callsOf(tensorParallel(4))('tensor').map(({ what, op, hides }) => `${what} ${op} ${hides}`);
    const hidden = calls.filter((call) => call.endsWith('true'));
    expect(hidden).toEqual(['gradients allreduce true']);
    expect(calls.length).toBeGreaterThan(4);
  });

  it('sum the gradients of shared keys in the dtype that they have until they are reduced', () => {
    const grouped = { ...setting, shape: { ...shape, keyValueHeads: 2 } };
    const ofKeys = (layout: Layout, asked = grouped) =>
      callsOf(
        layout,
        asked,
      )('tensor').flatMap(({ what, calls, bytes, hides }) =>
        what === 'gradients' && calls === 2 ? [[bytes / (8 * 16), hides]] : [],
      );
    const twice = (bytes: number) => [0, 1].map(() => [bytes, true]);
    expect(ofKeys(tensorParallel(4))).toEqual(twice(4));
    expect(ofKeys(shardedTensor(2, 4))).toEqual(twice(2));
    expect(ofKeys(shardedTensor(2, 4), { ...grouped, dtype: 'float32' })).toEqual(twice(4));
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

describe('a step', () => {
  const stepOf = (layout: Layout, changed: Partial<typeof planner> = {}) =>
    planStep({ ...planner, ...changed }, layout, setting);
  const alone = stepOf(dataParallel(4));

  it.each([
    ['ZeRO-1', zero1(4)],
    ['shards', fullySharded(4)],
    ['divided layers', tensorParallel(4)],
    ['both of these', shardedTensor(2, 2)],
  ])('updates what a rank has of the moments alone: %s', (_, layout) => {
    const { optimizerMs } = stepOf(layout).computation;
    expect(optimizerMs / alone.computation.optimizerMs).toBeCloseTo(1 / 4, 12);
  });

  it('is bound by computation while its communication takes no longer than forward and backward', () => {
    const { forwardMs, backwardMs, optimizerMs } = alone.computation;
    const isBound = (communicationMs: number) => {
      const inside = [{ ranks: 2, latencyMs: 0, busBytesPerSecond: 1, busOfOp: {} }];
      const atOne = stepOf(dataParallel(4), { links: { ...toyLinks, inside } }).communicationMs;
      inside[0]!.busBytesPerSecond = atOne / communicationMs;
      const step = stepOf(dataParallel(4), { links: { ...toyLinks, inside } });
      expect(step.communicationMs).toBeCloseTo(communicationMs, 9);
      return step.isBoundByComputation;
    };
    const passMs = forwardMs + backwardMs;
    expect([0.999 * passMs, passMs + optimizerMs / 2].map(isBound)).toEqual([true, false]);
  });

  it('fits where its peak is all of the memory', () => {
    const fits = (memoryBytes: number) =>
      stepOf(dataParallel(4), { machine: { ...toyMachine, memoryBytes } }).fits;
    expect([0, 1].map((less) => fits(alone.memory.peak - less))).toEqual([true, false]);
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
