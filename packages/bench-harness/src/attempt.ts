import { UsageError } from './errors.ts';

/** What `work` gives; undefined where it throws, whatever that is. */
export function ifPossible<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** What `work` gives. Where the system refuses it, a UsageError, of whose code `explain` makes the message. */
export function orUsageError<T>(work: () => T, explain: (code: string | undefined) => string): T {
  try {
    return work();
  } catch (cause) {
    throw new UsageError(explain((cause as NodeJS.ErrnoException).code), { cause });
  }
}
