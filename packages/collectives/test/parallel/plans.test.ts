import { type DType, type Tensor, full } from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { assignBuckets, assignShards } from '../../src/parallel/assign-shards.ts';
import { planBuckets } from '../../src/parallel/plan-buckets.ts';
import { joinStates, selectState } from '../../src/parallel/shard-states.ts';

describe('planBuckets', () => {
  const parameters = (sizes: readonly (readonly [number, DType?])[]) =>
    sizes.map(([size, dtype = 'float32']) => full([size], 0, { dtype }));
  const plan = (all: readonly Tensor[], firstBytes: number, bytes: number) =>
    planBuckets(all, { firstBytes, bytes }).map((bucket) =>
      bucket.map((parameter) => all.indexOf(parameter)),
    );

  it('the first bucket is full sooner, large gradients stay whole, the rest is a bucket too', () => {
    const all = parameters([[1], [1], [1], [1], [9], [1], [1]]);
    expect(plan(all, 4, 12)).toEqual([[0], [1, 2, 3], [4], [5, 6]]);
    expect(plan(all, Infinity, Infinity)).toEqual([[0, 1, 2, 3, 4, 5, 6]]);
    expect(plan([], 4, 12)).toEqual([]);
  });

  it('each has one dtype, and they are in the order of their first gradients', () => {
    const all = parameters([[1], [1, 'float16'], [1], [1, 'float16'], [0]]);
    expect(plan(all, 8, 8)).toEqual([[0, 2], [1, 3], [4]]);
  });

  it('each lies on one device', () => {
    const here = parameters([[1], [1]]);
    const device = openPlanningDevice();
    const there = [1, 1].map((size) => full([size], 0, { device }));
    const all = [here[0]!, there[0]!, here[1]!, there[1]!];
    expect(plan(all, 8, 8)).toEqual([
      [0, 2],
      [1, 3],
    ]);
    for (const each of there) each.dispose();
  });

  it('one that fills up sooner than another that began before it still comes after that one', () => {
    const all = parameters([[1], [8, 'float16'], [1], [8, 'float16']]);
    expect(plan(all, 16, 16)).toEqual([[0, 2], [1], [3]]);
    expect(plan(all, 16, 32)).toEqual([[0, 2], [1], [3]]);
    const three = parameters([[1], [1, 'float64'], [8, 'float16'], [3]]);
    expect(plan(three, 16, 16)).toEqual([[0, 3], [1], [2]]);
  });

  it('is full at its size and not before, and only the very first by the first size', () => {
    const all = parameters([[2], [2], [4, 'float16'], [1], [3], [3], [1]]);
    expect(plan(all, 16, 16)).toEqual([[0, 1], [2], [3, 4], [5, 6]]);
    expect(plan(all, 8, 16)).toEqual([[0], [1, 3, 4], [2], [5, 6]]);
  });
});

describe('assignShards', () => {
  it('gives the largest to whom has least', () => {
    expect(assignShards([1, 5, 3, 4, 0], 2)).toEqual([0, 0, 1, 1, 0]);
    expect(assignShards([3, 3], 4)).toEqual([0, 1]);
    expect(assignShards([], 2)).toEqual([]);
  });

  it('no rank has more than the even share and one part', () => {
    const sizes = Array.from({ length: 100 }, (_, i) => (i * 7919) % 101);
    const owners = assignShards(sizes, 7);
    const loads = Array.from({ length: 7 }, (_, rank) =>
      sizes.reduce((load, size, i) => load + (owners[i] === rank ? size : 0), 0),
    );
    const total = sizes.reduce((sum, size) => sum + size, 0);
    expect(Math.max(...loads)).toBeLessThanOrEqual(total / 7 + Math.max(...sizes));
  });
});

describe('assignBuckets', () => {
  it('fills buckets of each rank in the order of its parts', () => {
    expect(assignBuckets([4, 4, 4, 4, 4, 4], [0, 1, 0, 1, 0, 0], 8)).toEqual([0, 0, 0, 0, 1, 1]);
    expect(assignBuckets([3, 3, 3], [0, 0, 0], 4)).toEqual([0, 0, 1]);
    expect(assignBuckets([], [], 4)).toEqual([]);
  });

  it('leaves out those that a part of several has filled', () => {
    expect(assignBuckets([10, 1, 4, 1, 1], [0, 0, 1, 1, 1], 4)).toEqual([0, 2, 0, 1, 1]);
  });

  it('has none that are empty on all ranks, however much larger than a bucket a part is', () => {
    expect(assignBuckets([10, 1, 1, 9], [0, 0, 1, 1], 4)).toEqual([0, 1, 0, 0]);
    expect(assignBuckets([2 ** 40, 1, 2 ** 39, 1], [0, 0, 1, 1], 1)).toEqual([0, 2, 0, 1]);
  });
});

describe('states', () => {
  const state = () => ({
    tensors: { 'm.0': full([1], 0), 'm.2': full([1], 2), 'v.2': full([1], 3) },
    metadata: { optimizer: 'X', steps: '[5,0,7]', betas: '[0.9,0.99]', note: '[none' },
  });

  it('are split by parameters and joined again', () => {
    const whole = state();
    const parts = [[2], [0, 1]].map((numbers) => ({ numbers, ...selectState(whole, numbers, 3) }));
    expect(parts[0]!.metadata).toEqual({ ...whole.metadata, steps: '[7]' });
    expect(Object.keys(parts[0]!.tensors)).toEqual(['m.0', 'v.0']);
    expect(Object.keys(parts[1]!.tensors)).toEqual(['m.0']);
    const joined = joinStates([...parts, { numbers: [], tensors: {}, metadata: {} }]);
    expect(joined.metadata).toEqual(whole.metadata);
    // The two betas are a list of as many as one of the parts has parameters, whichever comes first.
    expect(joinStates(parts.toReversed()).metadata).toEqual(whole.metadata);
    expect(joined.tensors['m.2']).toBe(whole.tensors['m.2']);
    expect(Object.keys(joined.tensors).sort()).toEqual(Object.keys(whole.tensors));
  });

  it('of no parts is none, and text that is no list of all stays as it is', () => {
    expect(joinStates([])).toEqual({ tensors: {}, metadata: {} });
    const metadata = { name: '"ab"', none: 'null', longer: '[1,2,3]', half: '[1,2]' };
    expect(selectState({ tensors: {}, metadata }, [1], 2).metadata).toEqual({ ...metadata, half: '[2]' });
  });

  it.each(['m.3', 'm', '.', 'm.x', 'm.1x', 'm.-1'])('"%s" is refused', (name) => {
    const tensors = { [name]: full([1], 0) };
    expect(() => selectState({ tensors, metadata: {} }, [0], 3)).toThrow(
      `"${name}" is no tensor of one of 3`,
    );
  });
});
