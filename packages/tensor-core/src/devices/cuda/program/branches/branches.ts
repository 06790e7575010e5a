import type { Call } from '../../../../program/program.ts';
import { assignBranches } from './assign-branches.ts';
import { dependenciesOf } from './dependencies.ts';

/** Which calls run beside each other. */
export interface Branches {
  readonly count: number;
  /** The branch of each call: 0 is the chain that all others begin from and end in. */
  readonly ofCalls: readonly number[];
  /** For each call the earlier ones whose data it must run behind; see `dependenciesOf`. */
  readonly dependencies: readonly ReadonlySet<number>[];
  /** For each call the last one that other branches begin, by estimates, while it runs; itself where there is none. */
  readonly doneBy: readonly number[];
}

/** At most `most` of them; one is a chain. */
export function planBranches(calls: readonly Call[], most: number): Branches {
  if (most === 1) return chainOf(calls);
  const dependencies = dependenciesOf(calls);
  const { ofCalls, doneBy } = assignBranches(calls, dependencies, most);
  const count = 1 + ofCalls.reduce((last, branch) => Math.max(last, branch), 0);
  return count === 1 ? chainOf(calls) : { count, ofCalls, dependencies, doneBy };
}

function chainOf(calls: readonly Call[]): Branches {
  return {
    count: 1,
    ofCalls: calls.map(() => 0),
    dependencies: calls.map(() => new Set()),
    doneBy: calls.map((_, i) => i),
  };
}
