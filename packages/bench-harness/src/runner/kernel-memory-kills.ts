import { readFileSync } from 'node:fs';

/** How many processes the Linux kernel has killed for want of memory; null where that is unknown. */
export function countMemoryKills(): number | null {
  try {
    const count = /^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null;
  }
}
