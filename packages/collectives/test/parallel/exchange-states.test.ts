import { type Tensor, device, full, scope } from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import type { ProcessGroup } from '../../src/group/process-group.ts';
import { gatherState, scatterState } from '../../src/parallel/exchange-states.ts';

const cpu = device('cpu');
const live = () => cpu.memoryStatistics().liveStorages;

/**
 * A group of two, as rank 0 sees it, whose calls fail from the `failing`th on; the other rank announces what this one
 * does.
 */
function failingGroup(failing: number): ProcessGroup {
  let calls = 0;
  const call = () => ({
    done: ++calls < failing ? Promise.resolve() : Promise.reject(new Error('rank 1 is gone')),
  });
  const allGatherObject = (value: unknown) => Promise.resolve([value, value]);
  const group = { rank: 0, size: 2, allGatherObject, broadcast: call, send: call, recv: call };
  return group as unknown as ProcessGroup;
}

const tensorsOf = (): Record<string, Tensor> => ({ 'a.0': full([4], 1), 'b.0': full([4], 2) });
const partOf = (tensors: Record<string, Tensor>) => ({ numbers: [0], tensors, metadata: {} });

it("a state on another device is sent from the group's device", async () => {
  const gpu = openPlanningDevice();
  const tensors = scope(() => ({ 'a.0': full([4], 1), 'a.1': full([4], 2) }));
  const before = [live(), gpu.allocatedBytes];
  const sent: Tensor[] = [];
  const send = (x: Tensor) => {
    sent.push(x);
    expect(x.device).toBe(gpu);
    return { done: Promise.resolve() };
  };
  const group = Object.assign(failingGroup(Infinity), { send });
  const { tensors: own } = await scatterState(group, { tensors, metadata: {} }, 0, [0, 1], gpu);
  expect([Object.keys(own), own['a.0']!.device, sent.length]).toEqual([['a.0'], gpu, 1]);
  own['a.0']!.dispose();
  expect([live(), gpu.allocatedBytes]).toEqual(before);
  for (const tensor of Object.values(tensors)) tensor.dispose();
});

describe('states that cannot be brought to other ranks leave no copies behind', () => {
  it.each([
    ['to all, at once', null, 1],
    ['to all, half-way', null, 3],
    ['to this rank', 0, 2],
  ] as const)('%s', async (_, root, failing) => {
    const tensors = scope(tensorsOf);
    const before = live();
    await expect(gatherState(failingGroup(failing), partOf(tensors), root, cpu)).rejects.toThrow('gone');
    expect(live()).toBe(before);
    for (const tensor of Object.values(tensors)) tensor.dispose();
  });

  it('from one', async () => {
    const tensors = scope(() => ({ 'a.0': full([4], 1), 'b.0': full([4], 2), 'a.1': full([4], 3) }));
    const before = live();
    const scattered = scatterState(failingGroup(1), { tensors, metadata: {} }, 0, [0, 1], cpu);
    await expect(scattered).rejects.toThrow('gone');
    expect(live()).toBe(before);
    for (const tensor of Object.values(tensors)) tensor.dispose();
  });
});
