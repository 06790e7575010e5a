import type { Device } from '@roofline/tensor-core';
import type { CellContext } from '../../../runner/cell-task.ts';
import { stepRunner } from '../../../measuring/step-runner.ts';
import { describeFailure, prepareCell, startPeer } from '../../../peer/cell-peer.ts';
import { PeerError } from '../../../peer/python-peer.ts';
import type { PeerStepProfile, StepPeer } from '../../../peer/step-peer.ts';
import type { ProfileCell, ProfileSettings } from '../parameters.ts';
import type { PeerProfile } from '../result.ts';

/** Profiles the same steps in PyTorch. Its failure leaves what was measured before intact: it becomes the result. */
export async function profilePeer(
  cell: ProfileCell,
  context: CellContext<ProfileSettings>,
  device: Device,
): Promise<PeerProfile> {
  const peer = startPeer('torch', device);
  try {
    const description = await prepareCell(peer, cell, context, device);
    return { status: 'ok', ...description, ...(await profileSteps(peer, context)) };
  } catch (error) {
    if (!(error instanceof PeerError)) throw error;
    return describeFailure(error);
  } finally {
    await peer.close();
  }
}

/** Plain steps before a profiler is attached, then profiled ones, as ours. */
async function profileSteps(
  peer: StepPeer,
  { settings, progress }: CellContext<ProfileSettings>,
): Promise<{ steps: PeerStepProfile[]; plainMs: number[] }> {
  const { warmup, steps } = settings;
  const run = stepRunner(progress, { warmup, steps, name: "PyTorch's steps" });
  if (warmup > 0) await peer.run(warmup);
  const plainMs = (await peer.run(steps)).deviceMs;
  await run(warmup, () => peer.profile());
  const profiles = await run(steps, async () => {
    // Disturbed by the profile before, it is not counted.
    await peer.run(1);
    return peer.profile();
  });
  return { steps: profiles, plainMs };
}
