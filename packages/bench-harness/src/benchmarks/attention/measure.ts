import { device as openDevice, range, scope, type Device, type Tensor } from '@roofline/tensor-core';
import { attend, clearGradients, createOperands } from '../../attention/operands.ts';
import type { CompiledExecution } from '../../execution/kinds.ts';
import { precompile } from '../../execution/precompile.ts';
import { collectSteps, timeStep, type StepTime } from '../../measuring/timing.ts';
import { stepRunner } from '../../measuring/step-runner.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import { torchAttentionOf, type AttentionCell, type AttentionSettings } from './parameters.ts';
import { heldBetweenPasses } from './held-between-passes.ts';
import type { AttentionResult, PassTimes } from './result.ts';
import { TorchPasses } from './torch-passes.ts';

/** Measures one cell, in the cell's own process; with a peer, both in turn. */
export async function measureAttention(
  cell: AttentionCell,
  { deviceLabel, settings, progress }: CellContext<AttentionSettings>,
): Promise<AttentionResult> {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const theirs = settings.peer && torchAttentionOf(cell);
  if (!theirs) return timeAttention(device, cell, settings, progress);
  const torch = await TorchPasses.start(theirs, cell, settings, device);
  const ours = await timeAttention(device, cell, settings, progress, torch);
  return { ...ours, peer: await torch.finish() };
}

/** Whoever runs passes in turn with ours. */
export interface Rival {
  time(pass: 'forward' | 'backward', count: number): Promise<void>;
}
const noRival: Rival = { time: async () => {} };

/** Times a cell as it is to run. Every pass begins and ends with an idle device. */
export function timeAttention(
  device: Device,
  cell: AttentionCell,
  settings: AttentionSettings,
  progress: CellContext<AttentionSettings>['progress'],
  rival: Rival = noRival,
): Promise<AttentionResult> {
  const { execution } = cell;
  return execution === 'eager'
    ? timeEager(device, cell, { ...settings, rival }, progress)
    : timeCompiled(device, cell, execution, { ...settings, rival }, progress);
}

/** Runs so many of ours and of the rival's in turn: A B A B. Each turn costs the rival a request, and memory asked for anew. */
async function inTurn<T>(
  steps: number,
  ours: (count: number) => Promise<T[]>,
  theirs: (count: number) => Promise<void>,
): Promise<T[]> {
  const results: T[] = [];
  for (const count of [Math.ceil(steps / 2), Math.floor(steps / 2)]) {
    if (count === 0) continue;
    results.push(...(await ours(count)));
    await theirs(count);
  }
  return results;
}

/**
 * Times all forward passes, then all backward passes, each of which a forward pass goes before, untimed; between the
 * two it reads what memory is in use.
 */
async function timeEager(
  device: Device,
  cell: AttentionCell,
  { warmup, steps, seed, rival }: AttentionSettings & { readonly rival: Rival },
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

  const run = stepRunner(progress, { warmup, steps: 2 * steps, name: 'passes' });
  // The backward pass has a forward pass in it.
  await run(warmup, backward);
  device.resetPeakMemory();
  const forwardTimes = passTimes(
    await inTurn(
      steps,
      (count) => run(count, forward),
      (count) => rival.time('forward', count),
    ),
  );
  memory.peakForwardBytes = device.memoryStatistics().peakAllocatedBytes;
  const backwardTimes = passTimes(
    await inTurn(
      steps,
      (count) => run(count, backward),
      (count) => rival.time('backward', count),
    ),
  );
  memory.peakAllocatedBytes = device.memoryStatistics().peakAllocatedBytes;
  return { forward: forwardTimes, backward: backwardTimes, both: null, compilation: null, memory };
}

/**
 * Times the forward pass as one program, then both passes as another, each with only its own memory: a program keeps
 * what it works in.
 */
async function timeCompiled(
  device: Device,
  cell: AttentionCell,
  execution: CompiledExecution,
  { warmup, steps, seed, rival }: AttentionSettings & { readonly rival: Rival },
  progress: CellContext<AttentionSettings>['progress'],
): Promise<AttentionResult> {
  using operands = createOperands({ ...cell, heads: 1 }, device, seed);
  const operandBytes = device.allocatedBytes;
  const forward = () => attend(cell.attention, operands).detach();
  const both = () => {
    clearGradients(operands);
    const output = attend(cell.attention, operands);
    range('backward', () => output.backward(operands.gradient));
  };
  const time = async (fn: () => Tensor | undefined, name: string, theirs: 'forward' | 'backward') => {
    const run = stepRunner(progress, { warmup, steps, name });
    const { call, compiled, compilation } = precompile(device, fn, execution);
    const pass = () => timeStep(device, call);
    await run(warmup, pass);
    device.resetPeakMemory();
    const times = passTimes(
      await inTurn(
        steps,
        (count) => run(count, pass),
        (count) => rival.time(theirs, count),
      ),
    );
    const { peakAllocatedBytes } = device.memoryStatistics();
    const calls = compiled.explain().at(-1)!.table;
    compiled.dispose();
    return { times, compilation, peakAllocatedBytes, calls };
  };
  const ofForward = await time(forward, 'forward', 'forward');
  const ofBoth = await time(() => void both(), 'forward and backward', 'backward');
  const { peakAllocatedBytes } = ofBoth;
  const beforeBackwardBytes = operandBytes + heldBetweenPasses(ofBoth.calls);
  return {
    forward: ofForward.times,
    backward: null,
    both: ofBoth.times,
    compilation: { forward: ofForward.compilation, both: ofBoth.compilation },
    memory: { beforeBackwardBytes, peakForwardBytes: ofForward.peakAllocatedBytes, peakAllocatedBytes },
  };
}

function passTimes(passes: readonly StepTime[]): PassTimes {
  const { deviceMs, wallMs } = collectSteps(passes);
  return { deviceMs, wallMs };
}
