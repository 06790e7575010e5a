import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { ifPossible } from '../attempt.ts';
import { z } from 'zod';

/** What others did with this machine's processors while something was measured. */
export const otherWork = z.object({
  /** How many of them other processes kept busy, on average. */
  busyCores: z.number(),
  cores: z.number(),
});
export type OtherWork = z.infer<typeof otherWork>;

/** What Linux counts the times of a process in, whatever its kernel's clock. */
const ticksPerSecond = 100;
/** In less the ticks of a process say little. */
const shortestSeconds = 0.2;

/** Processor time in seconds, up to now. */
export interface ProcessorTimes {
  readonly atSeconds: number;
  readonly cores: number;
  /** Of all processors together. */
  readonly busy: number;
  /** Of this process, and of those among its descendants that have ended. */
  readonly own: number;
}

/**
 * Begins to watch what other processes do; the function that it returns says so, once all that was started meanwhile
 * has ended. Null where the system does not say (Linux does), and for what was too short.
 */
export function watchOtherWork(): () => OtherWork | null {
  const before = readTimes();
  return () => {
    const after = readTimes();
    return before && after && otherWorkBetween(before, after);
  };
}

export function otherWorkBetween(before: ProcessorTimes, after: ProcessorTimes): OtherWork | null {
  const seconds = after.atSeconds - before.atSeconds;
  if (seconds < shortestSeconds) return null;
  const others = after.busy - before.busy - (after.own - before.own);
  // Ticks are rounded.
  return { busyCores: Math.max(0, others) / seconds, cores: after.cores };
}

/** Null where the system does not say. */
export function readTimes(): ProcessorTimes | null {
  const own = ownSeconds();
  if (own === null) return null;
  const processors = cpus();
  const busyMs = processors.reduce(
    (sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq,
    0,
  );
  return { atSeconds: performance.now() / 1000, cores: processors.length, busy: busyMs / 1000, own };
}

function ownSeconds(): number | null {
  if (process.platform !== 'linux') return null;
  // Some sandboxes have no /proc.
  return ifPossible(() => secondsOfStat(readFileSync('/proc/self/stat', 'utf8'))) ?? null;
}

/** utime, stime, cutime and cstime of a line of /proc/PID/stat: its 14th to 17th words; the second may hold spaces. */
export function secondsOfStat(stat: string): number {
  const words = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return words.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
}
