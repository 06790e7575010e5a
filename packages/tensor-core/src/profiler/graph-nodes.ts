import type { NodeShape, ReplayedBranches } from '../program/replay.ts';

/** A graph as it was captured: how many nodes each of its calls is, and which calls may run at once; null for a chain. */
export interface CapturedGraph {
  readonly nodes: readonly number[];
  readonly branches: ReplayedBranches | null;
}

/** A node, by the call that it is a part of. */
interface CallNode {
  readonly call: number;
  readonly shape: NodeShape;
  /** Nodes of each branch, counted from its first, that have begun before this one. */
  readonly behind: readonly number[];
}

/**
 * The call of each activity of one launch of a graph, in the order in which they began. In a chain that is their order in
 * the graph. Branches are in order each: what began is the next node of one of them, one of the same kind, grid and block
 * whose calls' dependencies have begun. Where two are alike the first one is taken, if the others fit then; null where none fit.
 */
export function callsOfActivities(
  { nodes, branches }: CapturedGraph,
  activities: readonly NodeShape[],
): number[] | null {
  if (branches === null) return nodes.flatMap((count, call) => Array<number>(count).fill(call));
  const lanes = lanesOf(nodes, branches);
  const places = lanes.map(() => 0);
  const taken: number[] = [];
  /** Where the walk has been and could not go on. */
  const failed = new Set<string>();
  const nextLane = (from: number) => {
    const activity = activities[taken.length]!;
    for (let lane = from; lane < lanes.length; lane++) {
      const node = lanes[lane]![places[lane]!];
      if (!node || !isAlike(node.shape, activity)) continue;
      if (node.behind.some((count, other) => places[other]! < count)) continue;
      places[lane]!++;
      if (!failed.has(places.join())) return lane;
      places[lane]!--;
    }
    return -1;
  };
  let from = 0;
  while (taken.length < activities.length) {
    const lane = nextLane(from);
    from = 0;
    if (lane >= 0) {
      taken.push(lane);
      continue;
    }
    failed.add(places.join());
    const last = taken.pop();
    if (last === undefined) return null;
    places[last]!--;
    from = last + 1;
  }
  const read = lanes.map(() => 0);
  return taken.map((lane) => lanes[lane]![read[lane]!++]!.call);
}

/** The nodes of each branch, in their order. */
function lanesOf(
  nodes: readonly number[],
  { ofCalls, dependencies, shapes }: ReplayedBranches,
): CallNode[][] {
  const lanes: CallNode[][] = Array.from({ length: Math.max(...ofCalls) + 1 }, () => []);
  /** For each call how many nodes of each branch lie before its end. */
  const ends: number[] = [];
  let first = 0;
  nodes.forEach((count, call) => {
    const lane = lanes[ofCalls[call]!]!;
    const behind = lanes.map(() => 0);
    for (const earlier of dependencies[call]!)
      behind[ofCalls[earlier]!] = Math.max(behind[ofCalls[earlier]!]!, ends[earlier]!);
    for (const shape of shapes.slice(first, first + count)) lane.push({ call, shape, behind });
    first += count;
    ends.push(lane.length);
  });
  return lanes;
}

function isAlike(a: NodeShape, b: NodeShape): boolean {
  return a.kind === b.kind && isSame(a.grid, b.grid) && isSame(a.block, b.block);
}

function isSame(a: readonly number[] | null, b: readonly number[] | null): boolean {
  return a === b || (a !== null && b !== null && a.every((size, i) => size === b[i]));
}
