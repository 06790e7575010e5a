import type { Call } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { areIndependent } from '../passes/operands.ts';

/**
 * Calls that run alongside the main chain, by their places: each with the place of the call in the chain that waits for it, or the
 * number of calls where only the end of the program does. Such a call starts after the calls of the chain before it; calls on one
 * branch run in their own order.
 */
export interface Branches extends ReadonlyMap<number, number> {
  /** Those with ordered effects, on a branch of their own; the others share one. Default: none. */
  readonly ordered?: ReadonlySet<number>;
}

/** Where calls run: in the main chain, on the branch of those that gain by it, or on that of ordered effects. */
export type Lane = 'chain' | 'beside' | 'ordered';

export function laneOf(branches: Branches, place: number): Lane {
  if (!branches.has(place)) return 'chain';
  return branches.ordered?.has(place) ? 'ordered' : 'beside';
}

/** A schedule of one chain. */
export const oneChain: Branches = new Map();

/** The places, both included, of the calls that a call may run beside; its own alone in a chain. */
export function spanOf(branches: Branches, place: number): { readonly first: number; readonly last: number } {
  return { first: place, last: (branches.get(place) ?? place + 1) - 1 };
}

/** Whether calls at two places may run at once. */
export function mayOverlap(branches: Branches, a: number, b: number): boolean {
  const [early, late] = a < b ? [a, b] : [b, a];
  return laneOf(branches, early) !== laneOf(branches, late) && spanOf(branches, early).last >= late;
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

/**
 * The branches of calls by a rule: what nothing waits for over several calls runs beside those. Calls with ordered effects always run
 * on a branch, up to the first call that needs them; without a rule nothing else does.
 */
export function branchesOf(calls: readonly Call[], rule: BranchRule | null): Branches {
  const layout = new LaneLayout(calls);
  for (let place = calls.length - 1; place >= 0; place--) {
    const call = calls[place]!;
    const ordered = hasEffects(call);
    const end = ordered ? layout.waitingFor(place, 'ordered') : rule && besideEnd(layout, place, rule);
    if (end === null) layout.add(place, 'chain');
    else layout.add(place, ordered ? 'ordered' : 'beside', end);
  }
  return laidOut(layout.joins);
}

/** The place of the call that is to wait for one that gains by running beside others; null for one that does not. */
function besideEnd(
  layout: LaneLayout,
  place: number,
  { fewest, most, isWorthIt }: BranchRule,
): number | null {
  const { calls, chain } = layout;
  const call = calls[place]!;
  const end = Math.min(layout.waitingFor(place, 'beside'), chain.at(-most - 1) ?? calls.length);
  const beside = chain.filter((other) => other < end);
  if (call.outputs.length === 0 || beside.length < fewest) return null;
  const others = beside.map((at) => calls[at]!);
  return isWorthIt(call, others) ? end : null;
}

/** Calls from the last one on, each in its lane. */
class LaneLayout {
  readonly calls: readonly Call[];
  /** Places of those in the chain, the nearest last. */
  readonly chain: number[] = [];
  /** By lane and place, the place of the call in the chain that waits. */
  readonly joins = { beside: new Map<number, number>(), ordered: new Map<number, number>() };
  readonly #lanes = new Map<number, Lane>();
  /** By storage, the places of those that use it, the nearest last. */
  readonly #users = new Map<number, number[]>();

  constructor(calls: readonly Call[]) {
    this.calls = calls;
  }

  add(place: number, lane: Lane, join = 0): void {
    if (lane === 'chain') this.chain.push(place);
    else this.joins[lane].set(place, join);
    this.#lanes.set(place, lane);
    for (const storage of storagesOf(this.calls[place]!)) {
      const users = this.#users.get(storage);
      if (users) users.push(place);
      else this.#users.set(storage, [place]);
    }
  }

  /** The place of the first later call, outside of `lane`, that may not change places with the one here; their number for none. */
  waitingFor(place: number, lane: Lane): number {
    const { calls } = this;
    const call = calls[place]!;
    let first = calls.length;
    for (const storage of storagesOf(call)) {
      const users = this.#users.get(storage) ?? [];
      for (let i = users.length - 1; i >= 0 && users[i]! < first; i--)
        if (this.#lanes.get(users[i]!) !== lane && !areIndependent(call, calls[users[i]!]!))
          first = users[i]!;
    }
    return first;
  }
}

/** Both lanes as one map, in the order of places. */
function laidOut({ beside, ordered }: Record<Exclude<Lane, 'chain'>, ReadonlyMap<number, number>>): Branches {
  if (ordered.size === 0) return joinedInOrder(beside);
  const all = [...joinedInOrder(beside), ...joinedInOrder(ordered)].toSorted(([a], [b]) => a - b);
  return Object.assign(new Map(all), { ordered: new Set(ordered.keys()) });
}

/** What waits for a call of a branch has waited for the earlier ones there. */
function joinedInOrder(joins: ReadonlyMap<number, number>): ReadonlyMap<number, number> {
  let earliest = Infinity;
  return new Map(
    [...joins]
      .toSorted(([a], [b]) => b - a)
      .map(([place, join]) => [place, (earliest = Math.min(earliest, join))] as const)
      .reverse(),
  );
}

function storagesOf({ inputs, outputs }: Call): Set<number> {
  return new Set([...inputs, ...outputs].map(({ storage }) => storage));
}
