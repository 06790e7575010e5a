import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Phase } from '../../../src/measuring/timing.ts';
import { measureInstruments } from '../../../src/benchmarks/overhead/measure-instruments.ts';
import { FakeDevice } from '../../fixtures/fake-device.ts';
import { toyCell } from '../../fixtures/records.ts';

const mocks = vi.hoisted(() => ({
  device: vi.fn(),
  profile: vi.fn(),
  recordMemory: vi.fn(),
  createWorkload: vi.fn(),
}));
vi.mock('@roofline/tensor-core', () => mocks);
vi.mock('../../../src/benchmarks/e2e/workload.ts', () => ({ createWorkload: mocks.createWorkload }));

const cell = { ...toyCell, study: 'instruments' as const };
const progress = vi.fn();
let device: FakeDevice;

beforeEach(() => {
  vi.clearAllMocks();
  device = new FakeDevice();
  mocks.device.mockReturnValue(device);
  let steps = 0;
  // The nth step takes the device n ms, and the host half a millisecond before it is queued.
  const step = (phase: Phase) => phase('forward', () => device.run(++steps, 0.5));
  mocks.createWorkload.mockReturnValue({ step });
  mocks.profile.mockImplementation(async (fn: () => void) => {
    device.hostMs += 2;
    fn();
    device.hostMs += 5;
    return { kernels: Array.from({ length: 250 + steps }), droppedRecords: steps };
  });
  mocks.recordMemory.mockImplementation((fn: () => unknown) => {
    const result = fn();
    device.hostMs += 3;
    const actions = ['allocate', 'enter', 'free', 'enter', 'segment'];
    return { result, events: actions.map((action) => ({ action })) };
  });
});

const measure = (warmup: number, repeats: number) =>
  measureInstruments(cell, {
    settings: { calls: 1, repeats, warmup, seed: 7 },
    deviceLabel: 'cuda:3',
    progress,
  });

describe('measureInstruments', () => {
  it('keeps every second step after the warm-up, and none without a profiler once there was one', async () => {
    const { off, memory, profile, profilerAtRest } = await measure(1, 2);
    // A round is four steps, of which the first round of each part warms up.
    expect(off.deviceMs).toEqual([6.5, 10.5]);
    expect(memory.deviceMs).toEqual([8.5, 12.5]);
    expect(profile.deviceMs).toEqual([18.5, 22.5]);
    expect(profilerAtRest.deviceMs).toEqual([20.5, 24.5]);
    expect(off.wallMs).toEqual([6.625, 10.625]);
    expect(memory.wallMs).toEqual([8.625, 12.625]);
  });

  // With the wait for an idle device, by which a step begins.
  it('sets apart what an instrument takes before and after its step', async () => {
    const { profile, profilerAtRest, memory } = await measure(0, 2);
    expect(profile.readOutMs).toEqual([7.125, 7.125]);
    expect(profilerAtRest.readOutMs).toEqual([0.125, 0.125]);
    expect(memory.readOutMs).toEqual([3.125, 3.125]);
  });

  it('counts kernels, or what memory was asked for without the ranges, and adds up what was dropped', async () => {
    const { profile, memory } = await measure(1, 2);
    expect(profile.events).toEqual([268, 272]);
    expect(memory.events).toEqual([3, 3]);
    expect([profile.droppedRecords, memory.droppedRecords]).toEqual([18 + 22, 0]);
  });

  it('measures the cell on its device, and reports its progress', async () => {
    await measure(1, 2);
    expect(mocks.device).toHaveBeenCalledWith('cuda:3');
    expect(mocks.createWorkload).toHaveBeenCalledWith(cell, device, 7);
    expect(mocks.recordMemory).toHaveBeenCalledWith(expect.any(Function), { device });
    expect(progress.mock.calls).toEqual([
      [1, 1, 'warm-up'],
      [1, 2, 'rounds without profiler'],
      [2, 2, 'rounds without profiler'],
      [1, 1, 'warm-up'],
      [1, 2, 'rounds with profiler'],
      [2, 2, 'rounds with profiler'],
    ]);
  });
});
