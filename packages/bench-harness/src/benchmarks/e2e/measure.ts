import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { device as openDevice, type Device } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { countSteps } from '../../measuring/count-steps.ts';
import { alternationBlocks, collectSteps, timeStep, type StepTime } from '../../measuring/timing.ts';
import type { E2eCell, E2eSettings } from './parameters.ts';
import { PeerContender } from './peer-contender.ts';
import type { E2eResult } from './result.ts';
import { createWorkload, type Workload } from './workload.ts';

/**
 * Times one cell; with a peer, both in turn: A B A B. On a CPU, whose neighbours and clock change more than compiling
 * gains, compiled steps are also in turn with eager ones, where those are swept too.
 */
export async function measureE2e(cell: E2eCell, context: CellContext<E2eSettings>): Promise<E2eResult> {
  const { settings } = context;
  const device = openDevice(context.deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  workload.compile();
  const hasEager = settings.sweepsEager === true && cell.execution !== 'eager' && device.type === 'cpu';
  const run = stepRunner(device, context, { ours: settings.peer ? 2 : 1, eager: hasEager ? 1 : 0 });

  await run(settings.warmup, workload.step);
  const contender = settings.peer ? await PeerContender.start(cell, context, device) : null;
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
  return {
    ...collectSteps(steps),
    parameterCount: workload.parameterCount,
    work: workload.work,
    memory,
    loss: finiteOrNull(workload),
    compilation: workload.program?.compilation ?? null,
    eagerInTurn: hasEager ? collectSteps(eagerSteps) : null,
    peer: contender ? await contender.finish() : null,
  };
}

/**
 * Runs and times steps, and reports how far it has come; `warmups` are those of each way before the steps that count.
 */
function stepRunner(
  device: Device,
  { settings, progress }: CellContext<E2eSettings>,
  warmups: { readonly ours: number; readonly eager: number },
): (count: number, step: Workload['step']) => Promise<StepTime[]> {
  const stepDone = countSteps(progress, {
    warmup: (warmups.ours + warmups.eager) * settings.warmup,
    steps: (1 + warmups.eager) * settings.steps,
  });
  return async (count, step) => {
    const times: StepTime[] = [];
    for (let i = 0; i < count; i++) {
      times.push(timeStep(device, step));
      stepDone();
      // Lets finalizers run, and the process notice that its runner is gone.
      await turnOfTheEventLoop();
    }
    return times;
  };
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
