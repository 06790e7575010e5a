import type { CudaProperties } from '@roofline/cuda';
import type { BranchChoice } from '../executable/executable.ts';
import type { Graph } from '../graph/graph.ts';
import { CompileError } from '../../base/errors.ts';
import { fullestCall } from './arena-plan.ts';
import { Arena, partsOf } from './arena.ts';
import { formatBytes } from '../memory-budget.ts';
import { flopsOf, rematerialize } from '../passes/rematerialize.ts';
import { besideShortCalls, besideWherePossible } from './branch-rules.ts';
import { type BranchRule, type Branches, branchesOf, oneChain } from './branches.ts';
import { parameterKeys } from '../passes/carry-low-precision-copies.ts';
import { membersOf } from '../passes/fused-ops.ts';
import { lastReadsOf } from '../passes/operands.ts';
import { readTogether } from '../passes/read-together.ts';
import { withoutRepeatedCalls } from '../passes/without-repeated-calls.ts';
import { optimize } from '../passes/optimize.ts';

/** A graph as a GPU is to run it, in this order but for what runs beside, and the layout of what it makes. */
export interface Schedule {
  readonly graph: Graph;
  /** The graph without the calls that are made again to save memory, and before what reads the same is read together. */
  readonly plain: Graph;
  readonly branches: Branches;
  readonly arena: Arena;
}

/** An excess of so many bytes does not matter: it is the granularity in which the device allocates. */
export const negligibleBytes = 2 ** 21;
/** How often an arena that is too long is tried with fewer bytes needed at one time. */
const mostAttempts = 4;

/** How a graph is scheduled. */
export interface ScheduleOptions {
  readonly branches?: BranchChoice;
  /** The bytes that a run may take; see `CompileOptions`. Default: any number. */
  readonly memoryBudget?: number | undefined;
}

/**
 * Schedules a graph for a GPU of these properties. Low-precision copies of parameters are carried from run to run, which
 * saves their casts, as long as that takes no more memory than the eager run: gradients can reuse the memory of copies that
 * are made in each run, after their last read, but not of carried ones. Within a budget copies are the first that go, since
 * casts take no FLOPs; then intermediates are made again. Throws a CompileError for a budget that cannot be kept.
 */
export function scheduleGraph(
  graph: Graph,
  properties: CudaProperties,
  { branches = 'auto', memoryBudget = Infinity }: ScheduleOptions = {},
): Schedule {
  const most = memoryBudget - givenBytes(graph);
  const chain = chainOf(graph, properties, Math.min(most, graph.eagerPeakBytes));
  const schedule = withinBudget(withRequiredBranches(chain, branches), most, branches);
  if (bytesHeld(schedule) > most) throw overBudget(schedule, memoryBudget);
  return branches === 'auto' ? withMoreBranches(schedule, properties, most) : schedule;
}

/** A chain that carries only as many copies as `mostBytes` have room for, or as many as cannot be done without. */
function chainOf(graph: Graph, properties: CudaProperties, mostBytes: number): Schedule {
  const notCarried = new Set<string>();
  let best = plan(graph, properties, notCarried);
  for (;;) {
    const excess = bytesHeld(best) - mostBytes;
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
  return chainOfCalls(readTogether(optimized), optimized);
}

function chainOfCalls(graph: Graph, plain: Graph): Schedule {
  return { graph, plain, branches: oneChain, arena: new Arena(graph) };
}

function withBranches(schedule: Schedule, rule: BranchRule | null): Schedule {
  const branches = branchesOf(schedule.graph.calls, rule);
  return branches.size === 0
    ? schedule
    : { ...schedule, branches, arena: new Arena(schedule.graph, branches) };
}

/**
 * A chain with the branches that it has whatever memory they take. Calls with ordered effects are on one in any case but `never`: what
 * runs when in their order must not depend on the memory of one device.
 */
function withRequiredBranches(chain: Schedule, choice: BranchChoice): Schedule {
  if (choice === 'never') return chain;
  return withBranches(chain, choice === 'always' ? besideWherePossible : null);
}

/** The schedule with as many more calls on a branch as gain by it, if that takes no more memory, nor more than `mostBytes`. */
function withMoreBranches(schedule: Schedule, properties: CudaProperties, mostBytes: number): Schedule {
  const room = Math.min(bytesHeld(schedule) + negligibleBytes, mostBytes);
  const rule = besideShortCalls(properties);
  for (let { most } = rule; most >= rule.fewest; most /= 2) {
    const branched = withBranches(schedule, { ...rule, most });
    if (bytesHeld(branched) <= room) return branched;
  }
  return schedule;
}

/**
 * The schedule with so many calls made again that it takes `mostBytes`, or the least that it can. Where there is room, what has been
 * made again for a gradient or by a checkpoint stays for those that would make it once more.
 */
function withinBudget(schedule: Schedule, mostBytes: number, choice: BranchChoice): Schedule {
  if (mostBytes === Infinity) return schedule;
  const { plain } = schedule;
  let best = schedule;
  const tryWith = (most: number): { readonly held: number; readonly bytes: number } => {
    const { graph, bytes } = rematerialize(plain, most);
    const next = withRequiredBranches(
      chainOfCalls(readTogether(withoutRepeatedCalls(graph, most)), plain),
      choice,
    );
    const held = bytesHeld(next);
    if (held <= mostBytes || held < bytesHeld(best)) best = next;
    return { held, bytes };
  };
  let most = mostBytes - copyBytes(schedule);
  // An arena can be a little longer than the most that is needed at one time; how much, changes with each attempt, so steps grow.
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const { held, bytes } = tryWith(most);
    if (bytes > most || held <= mostBytes) break;
    most -= 2 ** attempt * (held - mostBytes);
  }
  if (bytesHeld(best) > mostBytes) tryWith(0);
  return best;
}

/** What a schedule does beyond that of a run without a budget. */
export function madeAgain({ graph, plain }: Schedule): {
  readonly callsMadeAgain: number;
  readonly flopsMadeAgain: number;
} {
  const flops = ({ calls }: Graph) => calls.reduce((sum, call) => sum + flopsOf(call), 0);
  return {
    // Fused ones are counted as before, since more of them are fused once it is known what is made again.
    callsMadeAgain: Math.max(0, membersOf(graph.calls).length - membersOf(plain.calls).length),
    flopsMadeAgain: Math.max(0, flops(graph) - flops(plain)),
  };
}

function overBudget(least: Schedule, budget: number): CompileError {
  const { name } = least.plain;
  const given = givenBytes(least.plain);
  const { call } = fullestCall(partsOf(least.graph, least.branches));
  const { op, range } = least.graph.calls[call]!;
  const place = [...(range?.path ?? []), op.name].join(' > ');
  return new CompileError(
    `compile: ${name === '' ? 'the function' : name} cannot run in a memoryBudget of ${formatBytes(budget)}: with all made again that ` +
      `can be, it takes ${formatBytes(given + bytesHeld(least))}, of which parameters, their state and arguments are ` +
      `${formatBytes(given)}. It needs most at ${place}. Raise the budget to that, or make the batch smaller.`,
  );
}

/** The bytes of what a run is given: parameters, an optimizer's state, arguments. */
function givenBytes({ storages }: Graph): number {
  return storages.reduce(
    (sum, { source, byteLength }) =>
      sum + (source.kind === 'made' || source.kind === 'copy' ? 0 : byteLength),
    0,
  );
}

function copyBytes({ graph: { storages } }: Schedule): number {
  return storages.reduce((sum, { source, byteLength }) => sum + (source.kind === 'copy' ? byteLength : 0), 0);
}

function bytesHeld(schedule: Schedule): number {
  return schedule.arena.byteLength + copyBytes(schedule);
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
