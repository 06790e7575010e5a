import { device as openDevice, type Device } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { stepRunner } from '../../measuring/step-runner.ts';
import { alternationBlocks, collectSteps, timeStep, type StepTime } from '../../measuring/timing.ts';
import type { E2eCell, E2eSettings } from './parameters.ts';
import { PeerContender } from './peer-contender.ts';
import type { E2eResult } from './result.ts';
import { createWorkload, type Workload } from './workload.ts';

/**
 * Times one cell; with a peer, both in turn: A B A B, or one after the other where both at once do not fit on the GPU. On a CPU, whose neighbours and clock change more than compiling
 * gains, compiled steps are also in turn with eager ones, where those are swept too.
 */
export async function measureE2e(cell: E2eCell, context: CellContext<E2eSettings>): Promise<E2eResult> {
  const { settings } = context;
  const device = openDevice(context.deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  workload.compile();
  const hasEager = settings.sweepsEager === true && cell.execution !== 'eager' && device.type === 'cpu';
  const [ours, eager] = [settings.peer ? 2 : 1, hasEager ? 1 : 0];
  const runSteps = stepRunner(context.progress, {
    warmup: (ours + eager) * settings.warmup,
    steps: (1 + eager) * settings.steps,
  });
  const run = (count: number, step: Workload['step']) => runSteps(count, () => timeStep(device, step));

  await run(settings.warmup, workload.step);
  const isApart = settings.peer != null && takesMostOf(device);
  const start = () => PeerContender.start(cell, context, device);
  const contender = settings.peer && !isApart ? await start() : null;
  // The peer takes seconds to start. Meanwhile V8 collects garbage and with it compiled code that relied on it.
  if (contender) await run(settings.warmup, workload.step);
  if (hasEager) await run(settings.warmup, workload.eagerStep);
  const [steps, eagerSteps]: [StepTime[], StepTime[]] = [[], []];
  const memory = { peakAllocatedBytes: 0, peakReservedBytes: 0 };
  for (const count of alternationBlocks(settings.steps)) {
    device.resetPeakMemory();
    steps.push(...(await run(count, workload.step)));
    raise(memory, device.memoryStatistics());
    if (hasEager) eagerSteps.push(...(await run(count, workload.eagerStep)));
    await contender?.run(count);
  }
  const ofOurs = {
    ...collectSteps(steps),
    parameterCount: workload.parameterCount,
    work: workload.work,
    memory,
    loss: finiteOrNull(workload),
    compilation: workload.program?.compilation ?? null,
    eagerInTurn: hasEager ? collectSteps(eagerSteps) : null,
  };
  workload.dispose();
  if (!isApart) return { ...ofOurs, peer: contender ? await contender.finish() : null };
  device.emptyCache();
  const alone = await start();
  for (const count of alternationBlocks(settings.steps)) await alone.run(count);
  return { ...ofOurs, peer: await alone.finish(), peerApart: true };
}

/** Whether so much of a GPU's memory is taken that no other step of the same size fits next to it. */
function takesMostOf(device: Device): boolean {
  const total = Number(device.properties()['memoryMiB'] ?? Infinity) * 2 ** 20;
  return 2 * device.memoryStatistics().peakReservedBytes > total;
}

/** Makes peaks those of both. */
function raise(peaks: E2eResult['memory'], others: E2eResult['memory']): void {
  peaks.peakAllocatedBytes = Math.max(peaks.peakAllocatedBytes, others.peakAllocatedBytes);
  peaks.peakReservedBytes = Math.max(peaks.peakReservedBytes, others.peakReservedBytes);
}

/** JSON has no NaN; a diverged loss is recorded as null. */
function finiteOrNull(workload: Workload): number | null {
  const loss = workload.loss();
  return loss !== null && Number.isFinite(loss) ? loss : null;
}
