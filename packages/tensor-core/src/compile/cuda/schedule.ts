import type { CudaProperties } from '@roofline/cuda';
import type { BranchChoice } from '../executable/executable.ts';
import type { Graph } from '../graph/graph.ts';
import { Arena } from './arena.ts';
import { besideShortCalls, besideWherePossible } from './branch-rules.ts';
import { type BranchRule, type Branches, branchesOf, oneChain } from './branches.ts';
import { parameterKeys } from '../passes/carry-low-precision-copies.ts';
import { lastReadsOf } from '../passes/operands.ts';
import { optimize } from '../passes/optimize.ts';

/** A graph as a GPU is to run it, in this order but for what runs beside, and the layout of what it makes. */
export interface Schedule {
  readonly graph: Graph;
  readonly branches: Branches;
  readonly arena: Arena;
}

/** An excess of so many bytes does not matter: it is the granularity in which the device allocates. */
export const negligibleBytes = 2 ** 21;

/**
 * Schedules a graph for a GPU of these properties. Low-precision copies of parameters are carried from run to run, which
 * saves their casts, as long as that takes no more memory than the eager run: gradients can reuse the memory of copies that
 * are made in each run, after their last read, but not of carried ones.
 */
export function scheduleGraph(
  graph: Graph,
  properties: CudaProperties,
  choice: BranchChoice = 'auto',
): Schedule {
  return withBranches(chainOf(graph, properties), properties, choice);
}

function chainOf(graph: Graph, properties: CudaProperties): Schedule {
  const notCarried = new Set<string>();
  let best = plan(graph, properties, notCarried);
  for (;;) {
    const excess = bytesHeld(best) - graph.eagerPeakBytes;
    const keys = excess > negligibleBytes ? copiesOf(best.graph, excess) : [];
    if (keys.length === 0) return best;
    for (const key of keys) notCarried.add(key);
    const next = plan(graph, properties, notCarried);
    if (bytesHeld(next) >= bytesHeld(best)) return best;
    best = next;
  }
}

function plan(graph: Graph, properties: CudaProperties, notCarried: ReadonlySet<string>): Schedule {
  const optimized = optimize(graph, properties, notCarried);
  return { graph: optimized, branches: oneChain, arena: new Arena(optimized) };
}

/**
 * A schedule whose calls run beside others where that is chosen and takes no more memory. Those with ordered effects do in any case
 * but `never`: what runs when in their order must not depend on the memory of one device.
 */
function withBranches(chain: Schedule, properties: CudaProperties, choice: BranchChoice): Schedule {
  if (choice === 'never') return chain;
  const branched = (rule: BranchRule | null): Schedule => {
    const branches = branchesOf(chain.graph.calls, rule);
    return branches.size === 0 ? chain : { ...chain, branches, arena: new Arena(chain.graph, branches) };
  };
  if (choice === 'always') return branched(besideWherePossible);
  const effects = branched(null);
  const rule = besideShortCalls(properties);
  for (let { most } = rule; most >= rule.fewest; most /= 2) {
    const schedule = branched({ ...rule, most });
    if (schedule.arena.byteLength <= effects.arena.byteLength + negligibleBytes) return schedule;
  }
  return effects;
}

function bytesHeld({ graph: { storages }, arena }: Schedule): number {
  return storages.reduce(
    (sum, { source, byteLength }) => sum + (source.kind === 'copy' ? byteLength : 0),
    arena.byteLength,
  );
}

/**
 * The parameters of copies that make up `bytes` together, or of all copies. Those whose last read is earliest come first, as
 * the last layers' are: made in each run, they leave the most room to other intermediates.
 */
function copiesOf({ calls, storages }: Graph, bytes: number): string[] {
  const lastReads = lastReadsOf(calls);
  const copies = storages
    .flatMap(({ source, byteLength }, number) =>
      source.kind === 'copy' ? [{ casts: source.casts, byteLength, lastRead: lastReads.get(number)! }] : [],
    )
    .toSorted((a, b) => a.lastRead - b.lastRead);
  const chosen: string[] = [];
  let sum = 0;
  for (const { casts, byteLength } of copies) {
    if (sum >= bytes) break;
    chosen.push(...parameterKeys(casts));
    sum += byteLength;
  }
  return chosen;
}
