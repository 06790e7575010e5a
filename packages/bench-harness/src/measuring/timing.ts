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

/** Times one step from an empty queue to an empty queue. */
export function timeStep<Event extends { elapsedMs(earlier: Event): number }>(
  device: TimedDevice<Event>,
  step: (phase: Phase) => void,
): StepTime {
  const marks: { name: string; start: Event; end: Event }[] = [];
  device.synchronize();
  const wallStart = performance.now();
  const start = device.recordEvent();
  step((name, work) => {
    const phaseStart = device.recordEvent();
    const result = work();
    marks.push({ name, start: phaseStart, end: device.recordEvent() });
    return result;
  });
  const end = device.recordEvent();
  device.synchronize();
  const wallMs = performance.now() - wallStart;

  const phasesMs: Record<string, number> = {};
  for (const mark of marks) {
    phasesMs[mark.name] = (phasesMs[mark.name] ?? 0) + mark.end.elapsedMs(mark.start);
  }
  return { deviceMs: end.elapsedMs(start), wallMs, phasesMs };
}

/** Turns a list of steps into arrays of samples. */
export function collectSteps(steps: readonly StepTime[]): StepTimes {
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
