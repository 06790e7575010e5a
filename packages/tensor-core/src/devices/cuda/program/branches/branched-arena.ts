import type { Program } from '../../../../program/program.ts';
import { Arena } from '../arena.ts';
import type { Branches } from './branches.ts';

/** How full of what calls leave behind an arena is made, of a chain's arena: the fuller, the harder to plan. */
const fillings = [1, 0.95, 0.85, 0.7];

/**
 * An arena in which calls that may run at once, by estimates, use no memory one after the other, as far as a chain's arena
 * has room for that. Who runs into the memory of another call all the same waits for it.
 */
export function branchedArena(program: Program, { count, doneBy }: Branches): Arena {
  const chain = new Arena(program);
  if (count === 1) return chain;
  for (const filling of fillings) {
    const arena = new Arena(program, doneBy, filling * chain.byteLength);
    if (arena.byteLength <= chain.byteLength) return arena;
  }
  return chain;
}
