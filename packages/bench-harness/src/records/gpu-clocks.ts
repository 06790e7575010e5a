import { RooflineError } from '@roofline/tensor-core';
import { type ClockLimit, type ClockReading, type GpuClocks, gpuClocks } from '@roofline/cuda';
import type { Throttling } from './throttling.ts';

export type GpuThrottling = NonNullable<Throttling['gpu']>;

/** Of what is shorter, readings say little. */
const millisecondsBetweenReadings = 1000;
/** Counters that claim more than all of the time by so much are none of nanoseconds. */
const mostOfTheTime = 1.05;

/** What readings that were taken from a begin to an end say. */
export function gpuThrottlingOf(readings: readonly ClockReading[], elapsedMs: number): GpuThrottling | null {
  const [first, last] = [readings[0], readings.at(-1)];
  if (!first || !last) return null;
  const during = readings.slice(1, -1).flatMap(({ limits }) => (limits === null ? [] : [limits]));
  const seen = (limit: ClockLimit) =>
    during.length === 0 ? null : during.filter((limits) => limits.includes(limit)).length / during.length;
  const counted = (counter: 'powerNs' | 'thermalNs') =>
    counterShare(first[counter], last[counter], elapsedMs);
  const shares = {
    power: counted('powerNs') ?? seen('power'),
    thermal: counted('thermalNs') ?? seen('thermal'),
    hardware: seen('hardware'),
  };
  return Object.values(shares).every((share) => share === null) ? null : shares;
}

/** Null for counters that are missing, were reset, or count something else. */
function counterShare(before: number | null, after: number | null, elapsedMs: number): number | null {
  if (before === null || after === null || after < before) return null;
  const share = (after - before) / (elapsedMs * 1e6);
  return share <= mostOfTheTime ? Math.min(1, share) : null;
}

/** Begins to watch a GPU; the function that it returns ends that and says what was seen. */
export function watchGpuClocks(pciBusId: string): () => GpuThrottling | null {
  const clocks = findClocks(pciBusId);
  if (clocks === null) return () => null;
  const start = performance.now();
  const readings = [clocks.read()];
  const timer = setInterval(() => readings.push(clocks.read()), millisecondsBetweenReadings);
  return () => {
    clearInterval(timer);
    readings.push(clocks.read());
    return gpuThrottlingOf(readings, performance.now() - start);
  };
}

/** Null where NVML is missing or does not give it; `roofline doctor` says why. */
function findClocks(pciBusId: string): GpuClocks | null {
  try {
    return gpuClocks(pciBusId);
  } catch (error) {
    if (error instanceof RooflineError) return null;
    throw error;
  }
}
