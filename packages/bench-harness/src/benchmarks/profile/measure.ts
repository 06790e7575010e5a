import { device as openDevice, profile } from '@roofline/tensor-core';
import type { CellContext } from '../definition.ts';
import { createWorkload } from '../e2e/workload.ts';
import { timeStep } from '../../measuring/timing.ts';
import { type PackedProfile, packProfile } from './packed-profile.ts';
import type { ProfileCell, ProfileSettings } from './parameters.ts';
import { profilePeer } from './peer/profile-peer.ts';
import type { ProfileResult } from './result.ts';

/**
 * How long plain steps run before one is profiled. What the profile before left behind, garbage above all, is not that
 * one's to pay for, nor that the device has waited while the host read what was recorded.
 */
const settlingMs = 25;

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
  const plainStep = () => timeStep(device, (phase) => workload.step(phase)).deviceMs;
  const profiledStep = async (): Promise<{ deviceMs: number; packed: PackedProfile }> => {
    let deviceMs = 0;
    const taken = await profile(() => void (deviceMs = plainStep()));
    return { deviceMs, packed: packProfile(taken) };
  };

  const ownSteps = settings.warmup + settings.steps;
  const total = ownSteps * (settings.peer ? 2 : 1);
  const result: ProfileResult = {
    steps: [],
    profiledMs: [],
    plainMs: [],
    pid: process.pid,
    tid: process.pid,
    compilation: workload.program?.compilation ?? null,
    peer: null,
  };
  const steps = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
  for (const _ of steps(settings.warmup)) plainStep();
  for (const _ of steps(settings.steps)) result.plainMs.push(plainStep());
  for (const step of steps(settings.warmup)) {
    // The profiler warms up too: its library loads, its code is compiled.
    await profiledStep();
    progress(step, total, 'warm-up');
  }
  for (const step of steps(settings.steps)) {
    const settled = performance.now() + settlingMs;
    do plainStep();
    while (performance.now() < settled);
    const { deviceMs, packed } = await profiledStep();
    result.profiledMs.push(deviceMs);
    result.steps.push(packed);
    progress(settings.warmup + step, total, 'steps');
  }
  if (settings.peer === null) return result;
  const peerProgress = (done: number) => progress(ownSteps + done, total, 'PyTorch');
  return { ...result, peer: await profilePeer(cell, { ...context, progress: peerProgress }, device) };
}
