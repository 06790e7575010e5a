import type { Call } from '../../../../program/program.ts';
import { assignBranches } from './assign-branches.ts';
import { dependenciesOf } from './dependencies.ts';

/** Which calls run beside each other. */
export interface Branches {
  readonly count: number;
  /** The branch of each call: 0 is the chain that all others begin from and end in. */
  readonly ofCalls: readonly number[];
  /** For each call the earlier ones that it must run behind; see `dependenciesOf`. */
  readonly dependencies: readonly ReadonlySet<number>[];
}

/** At most `most` of them; one is a chain. */
export function planBranches(calls: readonly Call[], most: number): Branches {
  const chain = { count: 1, ofCalls: calls.map(() => 0), dependencies: calls.map(() => new Set<number>()) };
  if (most === 1) return chain;
  const dependencies = dependenciesOf(calls);
  const ofCalls = assignBranches(calls, dependencies, most);
  const count = 1 + ofCalls.reduce((last, branch) => Math.max(last, branch), 0);
  return count === 1 ? chain : { count, ofCalls, dependencies };
}
