import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { device as openDevice, scope, type Device } from '@roofline/tensor-core';
import { attend, clearGradients, createOperands } from '../../attention/operands.ts';
import { timeStep, type StepTime } from '../../measuring/timing.ts';
import type { CellContext } from '../definition.ts';
import type { AttentionCell, AttentionSettings } from './parameters.ts';
import type { AttentionResult, PassTimes } from './result.ts';

/** Measures one cell, in the cell's own process. */
export function measureAttention(
  cell: AttentionCell,
  { deviceLabel, settings, progress }: CellContext<AttentionSettings>,
): Promise<AttentionResult> {
  return timeAttention(openDevice(deviceLabel as `cuda:${number}`), cell, settings, progress);
}

/**
 * Times all forward passes, then all backward passes, each of which a forward pass goes before, untimed; between the
 * two it reads what memory is in use. Every pass begins and ends with an idle device.
 */
export async function timeAttention(
  device: Device,
  cell: AttentionCell,
  { warmup, steps, seed }: AttentionSettings,
  progress: CellContext<AttentionSettings>['progress'],
): Promise<AttentionResult> {
  using operands = createOperands({ ...cell, heads: 1 }, device, seed);
  const memory = { beforeBackwardBytes: 0, peakForwardBytes: 0, peakAllocatedBytes: 0 };
  const forward = (): StepTime => scope(() => timeStep(device, () => void attend(cell.attention, operands)));
  const backward = (): StepTime =>
    scope(() => {
      const output = attend(cell.attention, operands);
      device.synchronize();
      memory.beforeBackwardBytes = device.allocatedBytes;
      const time = timeStep(device, () => output.backward(operands.gradient));
      clearGradients(operands);
      return time;
    });

  let done = 0;
  const run = async (count: number, pass: () => StepTime, message: string): Promise<PassTimes> => {
    const times: PassTimes = { deviceMs: [], wallMs: [] };
    for (let step = 0; step < count; step++) {
      const { deviceMs, wallMs } = pass();
      times.deviceMs.push(deviceMs);
      times.wallMs.push(wallMs);
      progress(++done, warmup + 2 * steps, message);
      // Lets finalizers run, and the process notice that its runner is gone.
      await turnOfTheEventLoop();
    }
    return times;
  };

  // The backward pass has a forward pass in it.
  await run(warmup, backward, 'warm-up');
  device.resetPeakMemory();
  const forwardTimes = await run(steps, forward, 'forward');
  memory.peakForwardBytes = device.memoryStatistics().peakAllocatedBytes;
  const backwardTimes = await run(steps, backward, 'backward');
  memory.peakAllocatedBytes = device.memoryStatistics().peakAllocatedBytes;
  return { forward: forwardTimes, backward: backwardTimes, memory };
}
