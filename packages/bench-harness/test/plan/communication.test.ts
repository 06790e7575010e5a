import { describe, expect, it } from 'vitest';
import { layoutsOf, resized } from '../../src/plan/layout.ts';
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
  const hybrid = layoutNamed('hybrid sharded', 64);
  expect(spanOf(hybrid, 'shard', toyLinks)).toEqual({ ranks: 8, perNode: 8 });
  expect(spanOf(hybrid, 'replicate', toyLinks)).toEqual({ ranks: 8, perNode: 1 });
});

it('a layout grows along the axis that is divided over all devices', () => {
  expect(resized(layoutNamed('hybrid sharded', 64), 128)).toMatchObject({ replicate: 16, shard: 8 });
  expect(resized(layoutNamed('hybrid sharded', 64), 4)).toBeNull();
  expect(resized(layoutNamed('sharded × tensor 2', 64), 8)).toMatchObject({ shard: 4, tensor: 2 });
  expect(resized(layoutNamed('tensor parallel', 4), 2)).toMatchObject({ tensor: 2 });
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
