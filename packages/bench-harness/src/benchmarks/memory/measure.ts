import { device as openDevice, memorySnapshot, recordMemory, type Device } from '@roofline/tensor-core';
import { stepRunner } from '../../measuring/step-runner.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import { createWorkload, type Workload } from '../e2e/workload.ts';
import type { Phase } from '../../measuring/timing.ts';
import { snapshotName, type MemoryCell, type MemorySettings } from './parameters.ts';
import type { MemoryResult } from './result.ts';
import { recordStep } from './record-step.ts';
import { writeSnapshot } from './snapshot-folder.ts';
import { summarizeStep } from './summarize-step.ts';

/** Records one step of a cell after its warm-up, and times steps with recording off and on. */
export async function measureMemory(
  cell: MemoryCell,
  context: CellContext<MemorySettings>,
): Promise<MemoryResult> {
  const { warmup, steps, seed, stackDepth } = context.settings;
  const device = openDevice(context.deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, seed);
  const recording = { device, stackDepth };
  workload.compile();
  // The recorded step, then each without recording and with it.
  const run = stepRunner(context.progress, { warmup, steps: 1 + 2 * steps });
  await run(warmup, () => workload.step(plainPhase));
  const [recorded] = await run(1, () => recordStep(workload, device, recording));
  const overhead: MemoryResult['overhead'] = { offMs: [], onMs: [] };
  const timed = () => timeStepMs(workload, device);
  for (let step = 0; step < steps; step++) {
    // Untimed first: what the recording before left behind, garbage above all, must not slow down the plain step.
    workload.step(plainPhase);
    overhead.offMs.push(...(await run(1, timed)));
    overhead.onMs.push(...(await run(1, () => recordMemory(timed, recording).result)));
  }
  return {
    parameterCount: workload.parameterCount,
    ...summarizeStep(cell, recorded!, workload.parameterCount),
    overhead,
    snapshot: writeSnapshot(snapshotName(cell), () => memorySnapshot(recorded!.record)),
  };
}

const plainPhase: Phase = (_name, work) => work();

function timeStepMs(workload: Workload, device: Device): number {
  device.synchronize();
  const start = performance.now();
  workload.step(plainPhase);
  device.synchronize();
  return performance.now() - start;
}
