import type { Program } from '../../../../program/program.ts';
import { Arena } from '../arena.ts';
import type { Branches } from './branches.ts';

/** How much longer than a chain's an arena may be for calls to run beside each other. */
const mostGrowth = 1.01;

/**
 * An arena in which calls that may run at once, by estimates, use no memory one after the other; where that would make it
 * longer than a chain's, it is so for shorter times. Who runs into the memory of another call all the same waits for it.
 */
export function branchedArena(program: Program, { count, doneBy }: Branches): Arena {
  const chain = new Arena(program);
  if (count === 1) return chain;
  for (const share of [1, 1 / 2, 1 / 4, 1 / 8]) {
    const arena = new Arena(
      program,
      doneBy.map((last, call) => call + Math.floor((last - call) * share)),
    );
    if (arena.byteLength <= mostGrowth * chain.byteLength) return arena;
  }
  return chain;
}
