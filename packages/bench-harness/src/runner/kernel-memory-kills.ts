import { readFileSync } from 'node:fs';
import { ifPossible } from '../attempt.ts';

/** How many processes the Linux kernel has killed for want of memory; null where that is unknown. */
export function countMemoryKills(): number | null {
  const statistics = ifPossible(() => readFileSync('/proc/vmstat', 'utf8')) ?? '';
  const count = /^oom_kill (\d+)$/m.exec(statistics)?.[1];
  return count === undefined ? null : Number(count);
}
