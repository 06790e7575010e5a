import type { Call } from '../graph/graph.ts';
import { areIndependent } from '../passes/operands.ts';

/**
 * Calls that run alongside the main chain, by their places: each with the place of the call in the chain that waits for it, or the
 * number of calls where only the end of the program does. Such a call starts after the calls of the chain before it; calls on the
 * branch run in their own order.
 */
export type Branches = ReadonlyMap<number, number>;

/** A schedule of one chain. */
export const oneChain: Branches = new Map();

/** The places, both included, of the calls that a call may run beside; its own alone in a chain. */
export function spanOf(branches: Branches, place: number): { readonly first: number; readonly last: number } {
  return { first: place, last: (branches.get(place) ?? place + 1) - 1 };
}

/** Whether calls at two places may run at once. */
export function mayOverlap(branches: Branches, a: number, b: number): boolean {
  const [early, late] = a < b ? [a, b] : [b, a];
  return !branches.has(late) && spanOf(branches, early).last >= late;
}

/** Which calls run beside others. */
export interface BranchRule {
  /** The fewest calls of the chain that a call must run alongside. */
  readonly fewest: number;
  /** The most calls of the chain before it is waited for anyway, so that its operands are not held for long. */
  readonly most: number;
  /** Whether a call gains by running alongside these of the chain. */
  isWorthIt(call: Call, beside: readonly Call[]): boolean;
}

/** The branches of calls by a rule: what nothing waits for over several calls runs beside those. */
export function branchesOf(calls: readonly Call[], { fewest, most, isWorthIt }: BranchRule): Branches {
  const joins = new Map<number, number>();
  /** Places of later calls in the chain, the nearest last; by storage those that use it. */
  const chain: number[] = [];
  const users = new Map<number, number[]>();
  for (let place = calls.length - 1; place >= 0; place--) {
    const call = calls[place]!;
    const waiting = firstWaiting(call, calls, users);
    const end = Math.min(waiting, chain.at(-most - 1) ?? calls.length);
    const beside = chain.filter((other) => other < end);
    if (
      call.outputs.length > 0 &&
      beside.length >= fewest &&
      isWorthIt(
        call,
        beside.map((at) => calls[at]!),
      )
    ) {
      joins.set(place, end);
      continue;
    }
    chain.push(place);
    for (const storage of storagesOf(call)) {
      const list = users.get(storage);
      if (list) list.push(place);
      else users.set(storage, [place]);
    }
  }
  return joinedInOrder(joins);
}

/** Whatever waits for a call that runs beside the chain has waited for those ahead of it there. */
function joinedInOrder(joins: ReadonlyMap<number, number>): Branches {
  let earliest = Infinity;
  return new Map(
    [...joins]
      .toSorted(([a], [b]) => b - a)
      .map(([place, join]) => [place, (earliest = Math.min(earliest, join))] as const)
      .reverse(),
  );
}

/** The place of the first of the `users` that may not change places with a call; the number of calls for none. */
function firstWaiting(call: Call, calls: readonly Call[], users: ReadonlyMap<number, number[]>): number {
  let first = calls.length;
  for (const storage of storagesOf(call)) {
    const places = users.get(storage) ?? [];
    for (let i = places.length - 1; i >= 0 && places[i]! < first; i--)
      if (!areIndependent(call, calls[places[i]!]!)) first = places[i]!;
  }
  return first;
}

function storagesOf({ inputs, outputs }: Call): Set<number> {
  return new Set([...inputs, ...outputs].map(({ storage }) => storage));
}
