import { DeviceError, type Environment, describeValue } from '@roofline/cuda/host';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** As many as the largest machines have. Starting each takes time; with far more, the first op would never finish. */
const mostThreads = 1024;

let requested: number | null = null;
let fixed: number | null = null;

/** How many threads share the CPU's work: what was set, ROOFLINE_CPU_THREADS, or one for each physical core. */
export function cpuThreads(): number {
  return fixed ?? requested ?? threadsFromEnvironment(process.env) ?? physicalCores();
}

/** Sets how many threads, from 1 to 1024, share the CPU's work. Throws a DeviceError once they have started. */
export function setCpuThreads(threads: number): void {
  if (!areThreads(threads)) throw wrongThreads('setCpuThreads', threads);
  if (fixed !== null && fixed !== threads) {
    throw new DeviceError(
      `setCpuThreads: ${fixed} threads have started; set ${threads} before the first op runs.`,
    );
  }
  requested = threads;
}

/** The number of threads, which from now on cannot change. */
export function fixCpuThreads(): number {
  return (fixed = cpuThreads());
}

export function threadsFromEnvironment(environment: Environment): number | null {
  const value = environment.ROOFLINE_CPU_THREADS;
  if (value === undefined || value === '') return null;
  const threads = Number(value);
  if (!areThreads(threads)) throw wrongThreads('ROOFLINE_CPU_THREADS', value);
  return threads;
}

/** Cores that this process may use; hardware threads of one core count once if the system reports them. */
function physicalCores(): number {
  return Math.min(coresOf(cpuInformation()) || Infinity, availableParallelism());
}

/** The number of distinct cores in the text of Linux' /proc/cpuinfo; 0 where it does not name them. */
export function coresOf(cpuInformation: string): number {
  const cores = new Set<string>();
  for (const processor of cpuInformation.split('\n\n')) {
    const core = /^core id\s*:\s*(\d+)/m.exec(processor)?.[1];
    const socket = /^physical id\s*:\s*(\d+)/m.exec(processor)?.[1];
    if (core !== undefined) cores.add(`${socket}/${core}`);
  }
  return cores.size;
}

function cpuInformation(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    return '';
  }
}

function areThreads(threads: number): boolean {
  return Number.isInteger(threads) && threads >= 1 && threads <= mostThreads;
}

function wrongThreads(source: string, given: unknown): DeviceError {
  return new DeviceError(
    `${source}: takes a whole number of threads from 1 to ${mostThreads}, not ${describeValue(given)}.`,
  );
}
