import { device as openDevice, profile } from '@roofline/tensor-core';
import type { CellContext } from '../definition.ts';
import { createWorkload } from '../e2e/workload.ts';
import { timeStep } from '../../measuring/timing.ts';
import { type PackedProfile, packProfile } from './packed-profile.ts';
import type { ProfileCell, ProfileSettings } from './parameters.ts';
import { profilePeer } from './peer/profile-peer.ts';
import type { ProfileResult } from './result.ts';

/**
 * How long plain steps run before one of them is counted. What the profile before left behind, garbage above all, is not
 * that one's to pay for, nor that the device has waited while the host read what was recorded.
 */
const settlingMs = 25;

/** Profiles steps of one cell, each beside a plain step: A B A B; with a peer, the same there when ours are done. */
export async function measureProfile(
  cell: ProfileCell,
  context: CellContext<ProfileSettings>,
): Promise<ProfileResult> {
  const { settings, deviceLabel, progress } = context;
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  workload.compile();
  const plainStep = () => timeStep(device, (phase) => workload.step(phase)).deviceMs;
  const profiledStep = async (): Promise<{ deviceMs: number; packed: PackedProfile }> => {
    let deviceMs = 0;
    const taken = await profile(() => void (deviceMs = plainStep()));
    return { deviceMs, packed: packProfile(taken) };
  };

  const ownSteps = settings.warmup + settings.steps;
  const total = ownSteps * (settings.peer ? 2 : 1);
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
    compilation: workload.program?.compilation ?? null,
    peer: null,
  };
  for (let step = 0; step < settings.steps; step++) {
    const settled = performance.now() + settlingMs;
    do plainStep();
    while (performance.now() < settled);
    result.plainMs.push(plainStep());
    const { deviceMs, packed } = await profiledStep();
    result.profiledMs.push(deviceMs);
    result.steps.push(packed);
    progress(settings.warmup + step + 1, total, 'steps');
  }
  if (settings.peer === null) return result;
  const peerProgress = (done: number) => progress(ownSteps + done, total, 'PyTorch');
  return { ...result, peer: await profilePeer(cell, { ...context, progress: peerProgress }, device) };
}
