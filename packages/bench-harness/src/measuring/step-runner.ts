import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';

type Progress = (done: number, total: number, message?: string) => void;

/**
 * Tells how far a cell has come, called after each step: `warm-up 1/2` of those that do not count, then `steps 1/10` of
 * those that do, or by another name.
 */
export function countSteps(
  progress: Progress,
  { warmup, steps, name = 'steps' }: { warmup: number; steps: number; name?: string },
): () => void {
  let done = 0;
  return () => {
    done++;
    if (done <= warmup) progress(done, warmup, 'warm-up');
    else progress(done - warmup, steps, name);
  };
}

/** Runs so many steps, one after the other, and gives what each gave. */
export type RunSteps = <T>(count: number, step: () => T | Promise<T>) => Promise<T[]>;

/**
 * Runs the steps of a cell, and reports after each how far it has come, as `countSteps` does. In between finalizers run, and
 * the process notices that its runner is gone.
 */
export function stepRunner(...counted: Parameters<typeof countSteps>): RunSteps {
  const stepDone = countSteps(...counted);
  return async (count, step) => {
    const results = [];
    for (let done = 0; done < count; done++) {
      results.push(await step());
      stepDone();
      await turnOfTheEventLoop();
    }
    return results;
  };
}

/** What steps gave, as lists: the samples of each of their numbers. */
export function samplesOf<Name extends string>(
  steps: readonly Readonly<Record<Name, number>>[],
): Record<Name, number[]> {
  const names = Object.keys(steps[0] ?? {}) as Name[];
  const lists = names.map((name) => [name, steps.map((step) => step[name])] as const);
  return Object.fromEntries(lists) as Record<Name, number[]>;
}
