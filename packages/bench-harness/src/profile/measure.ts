import { device as openDevice, profile } from '@roofline/tensor-core';
import type { CellContext } from '../benchmark.ts';
import { createWorkload } from '../e2e/workload.ts';
import { timeStep } from '../timing.ts';
import { type PackedProfile, packProfile } from './packed-profile.ts';
import type { ProfileCell, ProfileSettings } from './parameters.ts';
import type { ProfileResult } from './result.ts';

/** Profiles steps of one cell, each beside a plain step: A B A B. */
export async function measureProfile(
  cell: ProfileCell,
  { settings, deviceLabel, progress }: CellContext<ProfileSettings>,
): Promise<ProfileResult> {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  const plainStep = () => timeStep(device, (phase) => workload.step(phase)).deviceMs;
  const profiledStep = async (): Promise<{ deviceMs: number; packed: PackedProfile }> => {
    let deviceMs = 0;
    const taken = await profile(() => void (deviceMs = plainStep()));
    return { deviceMs, packed: packProfile(taken) };
  };

  const total = settings.warmup + settings.steps;
  for (let step = 0; step < settings.warmup; step++) {
    plainStep();
    // The profiler warms up too: its library loads, its code is compiled.
    await profiledStep();
    progress(step + 1, total, 'warm-up');
  }
  const result: ProfileResult = {
    steps: [],
    profiledMs: [],
    plainMs: [],
    pid: process.pid,
    tid: process.pid,
  };
  for (let step = 0; step < settings.steps; step++) {
    // What the profile before left behind, garbage above all, is not the plain step's to pay for.
    plainStep();
    result.plainMs.push(plainStep());
    const { deviceMs, packed } = await profiledStep();
    result.profiledMs.push(deviceMs);
    result.steps.push(packed);
    progress(settings.warmup + step + 1, total, 'steps');
  }
  return result;
}
