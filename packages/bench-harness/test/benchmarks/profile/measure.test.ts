import { expect, it, vi } from 'vitest';
import { measureProfile } from '../../../src/benchmarks/profile/measure.ts';
import type { Phase } from '../../../src/measuring/timing.ts';
import { FakeDevice } from '../../fixtures/fake-device.ts';
import { toyCell } from '../../fixtures/records.ts';

const mocks = vi.hoisted(() => ({ device: vi.fn(), profile: vi.fn(), createWorkload: vi.fn() }));
vi.mock('@roofline/tensor-core', () => mocks);
vi.mock('../../../src/benchmarks/e2e/workload.ts', () => ({ createWorkload: mocks.createWorkload }));

it('counts no plain step before the host is warm, and none once the profiler is attached, because it stays and slows what follows', async () => {
  const device = new FakeDevice();
  mocks.device.mockReturnValue(device);
  let hostMs = 0.5;
  let steps = 0;
  const step = (phase: Phase) =>
    phase('forward', () => {
      // The host's code is slow at first.
      device.run(0, ++steps < 100 ? 3 : hostMs);
      device.run(4);
    });
  mocks.createWorkload.mockReturnValue({ step, compile: () => {}, program: null });
  mocks.profile.mockImplementation(async (fn: () => void) => {
    hostMs = 2;
    fn();
    return { kernels: [], ops: [], ranges: [], wallUs: 0, droppedRecords: 0 };
  });
  const progress = vi.fn();
  const settings = { warmup: 1, steps: 3, seed: 0, phase: 'all' as const, range: null, peer: null };
  const result = await measureProfile(toyCell, { settings, deviceLabel: 'cuda:0', progress });
  expect(result.plainMs).toEqual([4.5, 4.5, 4.5]);
  expect(result.profiledMs).toEqual([6, 6, 6]);
  expect(mocks.profile).toHaveBeenCalledTimes(4);
  expect(progress.mock.calls).toEqual([
    [1, 1, 'warm-up'],
    [1, 3, 'steps'],
    [2, 3, 'steps'],
    [3, 3, 'steps'],
  ]);
});
