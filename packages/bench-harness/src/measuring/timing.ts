import { z } from 'zod';
import { anyNumber, checkArgument } from '../check-argument.ts';
import { ArgumentError } from '../errors.ts';

/** The part of a device that timing needs; tensor-core's `Device` is one. */
export interface TimedDevice<Event extends { elapsedMs(earlier: Event): number }> {
  recordEvent(): Event;
  synchronize(): void;
}

/** Runs `work` and times it on the device under `name`. Phases of one name within a step add up. */
export type Phase = <T>(name: string, work: () => T) => T;

/** One step: all samples in milliseconds. */
export interface StepTime {
  /** Between two device events, the queue empty before the first. */
  readonly deviceMs: number;
  /** By the host's clock, from the first call to the return of the final synchronize. */
  readonly wallMs: number;
  readonly phasesMs: Readonly<Record<string, number>>;
}

/** Samples of many steps, one array element a step. */
export interface StepTimes {
  deviceMs: number[];
  wallMs: number[];
  phasesMs: Record<string, number[]>;
}

/**
 * Times one step from an empty queue to an empty queue. Throws an ArgumentError for what is not a device or not a step,
 * and for a step or phase that is async: the clock would stop at its first `await`.
 */
export function timeStep<Event extends { elapsedMs(earlier: Event): number }>(
  device: TimedDevice<Event>,
  step: (phase: Phase) => void,
): StepTime {
  checkTimed(device, step);
  const marks: { name: string; start: Event; end: Event }[] = [];
  device.synchronize();
  const wallStart = performance.now();
  const start = device.recordEvent();
  const returned: unknown = step((name, work) => {
    const phaseStart = device.recordEvent();
    const result = work();
    marks.push({ name, start: phaseStart, end: device.recordEvent() });
    refusePromise(`the phase ${name}`, result);
    return result;
  });
  const end = device.recordEvent();
  device.synchronize();
  const wallMs = performance.now() - wallStart;
  refusePromise('step', returned);

  const phasesMs: Record<string, number> = {};
  for (const mark of marks) {
    phasesMs[mark.name] = (phasesMs[mark.name] ?? 0) + mark.end.elapsedMs(mark.start);
  }
  return { deviceMs: end.elapsedMs(start), wallMs, phasesMs };
}

/** By hand, because it runs right before what is measured. */
function checkTimed(device: object, step: unknown): void {
  const { recordEvent, synchronize } = (device ?? {}) as Partial<Record<string, unknown>>;
  if (typeof recordEvent !== 'function' || typeof synchronize !== 'function')
    throw new ArgumentError(
      'timeStep: device must have recordEvent() and synchronize(); take one of device().',
    );
  if (typeof step !== 'function') throw new ArgumentError('timeStep: step must be a function.');
}

function refusePromise(what: string, returned: unknown): void {
  if (typeof (returned as PromiseLike<unknown> | null | undefined)?.then !== 'function') return;
  // Its work goes on and may fail; the error that counts is thrown here.
  (returned as PromiseLike<unknown>).then(undefined, () => {});
  throw new ArgumentError(
    `timeStep: ${what} is async, and would be timed up to its first await. Await what it needs before.`,
  );
}

const stepTimes = z.array(
  z.object({
    deviceMs: anyNumber,
    wallMs: anyNumber,
    phasesMs: z.record(z.string(), anyNumber),
  }),
);

/** Turns a list of steps into arrays of samples. */
export function collectSteps(steps: readonly StepTime[]): StepTimes {
  checkArgument('collectSteps', 'steps', steps, stepTimes);
  const names = [...new Set(steps.flatMap((step) => Object.keys(step.phasesMs)))];
  return {
    deviceMs: steps.map((step) => step.deviceMs),
    wallMs: steps.map((step) => step.wallMs),
    phasesMs: Object.fromEntries(names.map((name) => [name, steps.map((step) => step.phasesMs[name] ?? 0)])),
  };
}

/**
 * Sizes of the blocks in which two contenders alternate (A B A B ...): at least two blocks where there are two
 * steps, none longer than five, so that slow drifts of clocks and temperature meet both alike.
 */
export function alternationBlocks(steps: number): number[] {
  const count = Math.min(steps, Math.max(2, Math.ceil(steps / 5)));
  return Array.from(
    { length: count },
    (_, index) => Math.floor(((index + 1) * steps) / count) - Math.floor((index * steps) / count),
  );
}
