import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifPossible } from '../attempt.ts';

/** How often heat has slowed each core, and each CPU as a whole, down since the system started; by file. */
export type SlowdownCounts = ReadonlyMap<string, number>;

const folderOfCpus = '/sys/devices/system/cpu';
const counters = ['core_throttle_count', 'package_throttle_count'];

/** Null where the system does not count: Linux does on Intel CPUs, outside of virtual machines. */
export function readSlowdowns(folder: string = folderOfCpus): SlowdownCounts | null {
  const counts = namesIn(folder)
    .filter((name) => /^cpu\d+$/.test(name))
    .flatMap((cpu) => counters.map((counter) => join(folder, cpu, 'thermal_throttle', counter)))
    .flatMap((file) => {
      const count = readCount(file);
      return count === null ? [] : [[file, count] as const];
    });
  return counts.length === 0 ? null : new Map(counts);
}

/** The most that one of them has grown; null where nothing can be said, for example when counters were reset. */
export function slowdownsBetween(before: SlowdownCounts, after: SlowdownCounts): number | null {
  const grown = [...after].flatMap(([file, count]) => {
    const earlier = before.get(file);
    return earlier === undefined || count < earlier ? [] : [count - earlier];
  });
  return grown.length === 0 ? null : Math.max(...grown);
}

/** Other systems have no such folder. */
function namesIn(folder: string): string[] {
  return ifPossible(() => readdirSync(folder)) ?? [];
}

function readCount(file: string): number | null {
  const text = ifPossible(() => readFileSync(file, 'utf8').trim());
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
