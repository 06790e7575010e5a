import { device as openDevice, profile } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { createWorkload } from '../e2e/workload.ts';
import { stepRunner } from '../../measuring/step-runner.ts';
import { timeStep } from '../../measuring/timing.ts';
import { type PackedProfile, packProfile } from './packed-profile.ts';
import type { ProfileCell, ProfileSettings } from './parameters.ts';
import { profilePeer } from './peer/profile-peer.ts';
import type { ProfileResult } from './result.ts';

/**
 * How long plain steps run before one is profiled. Neither what the profile before left behind, garbage above all, nor
 * the device's wait while the host read the recording may count against it.
 */
const settlingMs = 25;

/**
 * How long plain steps of a GPU run at least before one is timed. It may wait for the host, whose JavaScript gets faster
 * for about a hundred steps; those that are profiled come later, and would seem to cost nothing next to slower ones.
 */
const hostWarmupMs = 1000;

/**
 * Times plain steps of one cell, then profiles as many; with a peer, the same there when ours are done. Not in turn:
 * CUPTI stays attached to a process that has profiled, and each of its launches costs the host more from then on.
 */
export async function measureProfile(
  cell: ProfileCell,
  context: CellContext<ProfileSettings>,
): Promise<ProfileResult> {
  const { settings, deviceLabel, progress } = context;
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  workload.compile();
  const step = () => timeStep(device, (phase) => workload.step(phase)).deviceMs;

  const plainMs = plainSteps(step, settings, device.type === 'cuda' ? hostWarmupMs : 0);
  const run = stepRunner(progress, settings);
  // The profiler warms up too: its library loads, its code is compiled.
  await run(settings.warmup, () => profiledStep(step));
  const profiled = await run(settings.steps, () => {
    settle(step);
    return profiledStep(step);
  });
  const result: ProfileResult = {
    steps: profiled.map(({ packed }) => packed),
    profiledMs: profiled.map(({ deviceMs }) => deviceMs),
    plainMs,
    pid: process.pid,
    tid: process.pid,
    compilation: workload.program?.compilation ?? null,
    peer: null,
  };
  if (settings.peer === null) return result;
  return { ...result, peer: await profilePeer(cell, context, device) };
}

function plainSteps(step: () => number, { warmup, steps }: ProfileSettings, atLeastMs: number): number[] {
  const warmAt = performance.now() + atLeastMs;
  for (let done = 0; done < warmup || performance.now() < warmAt; done++) step();
  return Array.from({ length: steps }, step);
}

async function profiledStep(step: () => number): Promise<{ deviceMs: number; packed: PackedProfile }> {
  let deviceMs = 0;
  const packed = packProfile(await profile(() => void (deviceMs = step())));
  return { deviceMs, packed };
}

function settle(step: () => number): void {
  const settled = performance.now() + settlingMs;
  do step();
  while (performance.now() < settled);
}
