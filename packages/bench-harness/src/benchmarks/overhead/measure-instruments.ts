import { device as openDevice, profile, recordMemory, type Device } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { createWorkload } from '../e2e/workload.ts';
import { samplesOf, stepRunner } from '../../measuring/step-runner.ts';
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
  const recorded = (name: InstrumentName): Promise<InstrumentedStep> => {
    // What a step leaves behind, garbage above all, must not slow down the next one: an untimed one goes between.
    step();
    return readStep(instruments[name], device, step);
  };
  const rounds = async <T>(name: string, round: () => Promise<T>): Promise<T[]> => {
    const run = stepRunner(progress, { warmup: settings.warmup, steps: settings.repeats, name });
    await run(settings.warmup, round);
    return run(settings.repeats, round);
  };
  const beforeProfiling = await rounds('rounds without profiler', async () => {
    step();
    const { deviceMs, wallMs } = step();
    return { off: { deviceMs, wallMs }, memory: await recorded('memory') };
  });
  const fromThenOn = await rounds('rounds with profiler', async () => {
    return { profile: await recorded('profile'), profilerAtRest: await recorded('profilerAtRest') };
  });
  return {
    off: samplesOf(beforeProfiling.map(({ off }) => off)),
    profile: resultOf(fromThenOn.map((round) => round.profile)),
    profilerAtRest: resultOf(fromThenOn.map(({ profilerAtRest }) => profilerAtRest)),
    memory: resultOf(beforeProfiling.map(({ memory }) => memory)),
  };
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

/** All of it in numbers. */
interface InstrumentedStep extends Omit<RecordedStep, 'time'> {
  readonly deviceMs: number;
  readonly wallMs: number;
  readonly readOutMs: number;
}

async function readStep(
  instrument: Instrument,
  device: Device,
  step: () => StepTime,
): Promise<InstrumentedStep> {
  const start = performance.now();
  const { time, events, droppedRecords } = await instrument(device, step);
  const { deviceMs, wallMs } = time;
  return { deviceMs, wallMs, readOutMs: performance.now() - start - wallMs, events, droppedRecords };
}

function resultOf(steps: readonly InstrumentedStep[]): InstrumentResult[InstrumentName] {
  const samples = samplesOf<keyof InstrumentedStep>(steps);
  return { ...samples, droppedRecords: samples.droppedRecords.reduce((sum, dropped) => sum + dropped, 0) };
}
