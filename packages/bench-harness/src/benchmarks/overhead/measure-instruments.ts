import { device as openDevice, profile, recordMemory, type Device } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { createWorkload } from '../e2e/workload.ts';
import { stepRunner } from '../../measuring/step-runner.ts';
import { timeStep, type StepTime } from '../../measuring/timing.ts';
import type { InstrumentCell, OverheadSettings } from './parameters.ts';
import type { InstrumentName, InstrumentResult } from './result.ts';

/**
 * Times train steps without an instrument and under each. Not all in turn: CUPTI stays attached to a process that has
 * profiled, and what that costs is not to be part of the steps without an instrument.
 */
export async function measureInstruments(
  cell: InstrumentCell,
  { settings, deviceLabel, progress }: CellContext<OverheadSettings>,
): Promise<InstrumentResult> {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  const step = () => timeStep(device, (phase) => workload.step(phase));
  const timed = async (name: InstrumentName, result: InstrumentResult): Promise<void> => {
    // What a step leaves behind, garbage above all, must not slow down the next one: an untimed one goes between.
    step();
    keepInstrumented(result[name], await readStep(instruments[name], device, step));
  };
  const beforeProfiling = async (result: InstrumentResult): Promise<void> => {
    step();
    keepTimes(result.off, step());
    await timed('memory', result);
  };
  const fromThenOn = async (result: InstrumentResult): Promise<void> => {
    await timed('profile', result);
    await timed('profilerAtRest', result);
  };

  const [warmup, result] = [noSteps(), noSteps()];
  const parts = [
    { name: 'rounds without profiler', round: beforeProfiling },
    { name: 'rounds with profiler', round: fromThenOn },
  ];
  for (const { name, round } of parts) {
    const run = stepRunner(progress, { warmup: settings.warmup, steps: settings.repeats, name });
    await run(settings.warmup, () => round(warmup));
    await run(settings.repeats, () => round(result));
  }
  return result;
}

interface RecordedStep {
  readonly time: StepTime;
  readonly events: number;
  readonly droppedRecords: number;
}
type Instrument = (device: Device, step: () => StepTime) => RecordedStep | Promise<RecordedStep>;

const instruments: Readonly<Record<InstrumentName, Instrument>> = {
  async profile(_device, step) {
    let time: StepTime | null = null;
    const { kernels, droppedRecords } = await profile(() => void (time = step()));
    return { time: time!, events: kernels.length, droppedRecords };
  },
  profilerAtRest: (_device, step) => ({ time: step(), events: 0, droppedRecords: 0 }),
  memory(device, step) {
    const { result: time, events } = recordMemory(step, { device });
    return { time, events: events.filter(({ action }) => action !== 'enter').length, droppedRecords: 0 };
  },
};

type InstrumentedStep = RecordedStep & { readonly readOutMs: number };

async function readStep(
  instrument: Instrument,
  device: Device,
  step: () => StepTime,
): Promise<InstrumentedStep> {
  const start = performance.now();
  const recorded = await instrument(device, step);
  return { ...recorded, readOutMs: performance.now() - start - recorded.time.wallMs };
}

function keepTimes(steps: InstrumentResult['off'], { deviceMs, wallMs }: StepTime): void {
  steps.deviceMs.push(deviceMs);
  steps.wallMs.push(wallMs);
}

function keepInstrumented(steps: InstrumentResult[InstrumentName], step: InstrumentedStep): void {
  keepTimes(steps, step.time);
  steps.readOutMs.push(step.readOutMs);
  steps.events.push(step.events);
  steps.droppedRecords += step.droppedRecords;
}

function noSteps(): InstrumentResult {
  const instrumented = () => ({ deviceMs: [], wallMs: [], readOutMs: [], events: [], droppedRecords: 0 });
  return {
    off: { deviceMs: [], wallMs: [] },
    profile: instrumented(),
    profilerAtRest: instrumented(),
    memory: instrumented(),
  };
}
