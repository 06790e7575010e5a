import { readFileSync, readdirSync } from 'node:fs';

/** Whether this system can say which processes have a variable. */
export const tellsLiving = process.platform === 'linux';

/** The commands of the living processes that were started with the variable `name=value`, or by one that was. */
export function livingWith(name: string, value: string): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        // Of a process that has ended and has not been waited for, it is empty.
        const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
        if (!variables.includes(`${name}=${value}`)) return [];
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()];
      } catch {
        return [];
      }
    });
}
