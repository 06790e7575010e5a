import type { MatmulAttributes } from '../../ops/matrix/matmul.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { membersOf } from './fused-ops.ts';
import { fillsIntermediate, fillsVectors, joinColumns, mayLieInRows, stackRows } from './joint-storage.ts';
import { dense, isAlike, isDenseMatrix, isLowProduct, liesStacked, mayMove } from './low-products.ts';
import { isSameOperand, leaveAsIs } from './operands.ts';
import { expressionOf } from './pointwise-call.ts';
import { type Placed, type Rewrite, rewritten } from './rewrite.ts';

/** How many calls after a product its partners are looked for: rotations and casts lie between those of one layer. */
const farthest = 32;

/**
 * Makes x · W₁ᵀ, x · W₂ᵀ ... of one x a single product x · [W₁; W₂; ...]ᵀ. A result that is needed much longer than the others,
 * as values are compared with queries and keys, remains a product of its own, because it would keep their memory alive, too;
 * its weights still follow theirs in the joint storage.
 */
export function mergeProjections(graph: Graph): Graph {
  return rewritten(graph, (rewrite, at) => {
    const projections = projectionsFrom(rewrite.graph, at);
    if (projections.length > 1) mergeAll(rewrite, projections);
  });
}

/** The projections of one activation, from the call at `at` on, until the activation is written. */
function projectionsFrom({ calls }: Graph, at: number): Placed[] {
  const first = calls[at]!;
  if (!isProjection(first)) return [];
  const found: Placed[] = [{ call: first, at }];
  const [x] = first.inputs as [Operand];
  const end = Math.min(calls.length, at + farthest);
  for (let i = at + 1; i < end; i++) {
    const call = calls[i]!;
    if (isProjection(call) && isAlike(call, first) && isSameOperand(call.inputs[0]!, x))
      found.push({ call, at: i });
    if (!leaveAsIs([call], [x])) break;
  }
  return found;
}

/** A low-precision product with the transpose of a dense matrix. */
function isProjection(call: Call): boolean {
  if (!isLowProduct(call)) return false;
  const [, w] = call.inputs as [Operand, Operand];
  return (call.attributes as MatmulAttributes).transposeB === true && isDenseMatrix(w);
}

function mergeAll(rewrite: Rewrite, projections: readonly Placed[]): void {
  const { graph, uses } = rewrite;
  const joinable = projections.filter(({ call }) => mayLieInRows(graph, uses, call.outputs[0]!));
  const areStacked = liesStacked(joinable.map(({ call }) => call.inputs[1]!));
  const members = areStacked ? joinable : withOwnWeights(rewrite, joinable);
  const [first] = members;
  if (members.length < 2 || !first) return;
  if (areStacked && !mayMove(graph, members, first.at)) return;
  const groups = groupedByEnd(rewrite, members);
  const ordered = groups.flat().map(({ call }) => call);
  const weights = ordered.map((call) => call.inputs[1]!);
  const makers = areStacked ? [] : weights.map(({ storage }) => uses.get(storage)![0]!);
  const outputs = ordered.map((call) => call.outputs[0]!);
  if (!rewrite.isFree([...ordered, ...makers], areStacked ? outputs : [...outputs, ...weights])) return;
  if (!areStacked) {
    for (const maker of makers) if (rewrite.placeOf(maker) > first.at) rewrite.hoist(maker, first.call);
    stackRows(rewrite, weights);
  }
  for (const group of groups) {
    const joint = group.map(({ call }) => rewrite.moved(call.inputs[1]!));
    if (group.length > 1 && liesStacked(joint)) mergeGroup(rewrite, group);
  }
}

/** Replaces the first of a group, whose weights follow one another in memory, by one product of all. */
function mergeGroup(rewrite: Rewrite, group: readonly Placed[]): void {
  const calls = group.map(({ call }) => call);
  const [first, ...others] = calls as [Call, ...Call[]];
  const joint = joinColumns(
    rewrite,
    calls.map((call) => call.outputs[0]!),
  );
  const w = rewrite.moved(first.inputs[1]!);
  const n = calls.reduce((sum, { inputs }) => sum + inputs[1]!.shape[0]!, 0);
  const [y] = first.outputs as [Operand];
  rewrite.replace(first, {
    ...first,
    inputs: [first.inputs[0]!, dense(w, [n, w.shape[1]!])],
    outputs: [dense({ ...y, storage: joint }, [...y.shape.slice(0, -1), n])],
    members: membersOf(calls),
  });
  for (const call of others) rewrite.replace(call);
}

/** Groups of projections whose results are needed for about the same time, each in its order. */
function groupedByEnd(rewrite: Rewrite, projections: readonly Placed[]): Placed[][] {
  const groups: { readonly end: number; readonly members: Placed[] }[] = [];
  for (const projection of projections) {
    const end = rewrite.lastUseOf(projection.call.outputs[0]!);
    const group = groups.find((other) => Math.abs(other.end - end) <= farthest);
    if (group) group.members.push(projection);
    else groups.push({ end, members: [projection] });
  }
  return groups.map(({ members }) => members);
}

/** Those whose weights differ, each filling a storage made by one cast that could run before all projections. */
function withOwnWeights(rewrite: Rewrite, projections: readonly Placed[]): Placed[] {
  const { graph, uses } = rewrite;
  const seen = new Set<number>();
  return projections.filter(({ call }) => {
    const [, w] = call.inputs as [Operand, Operand];
    if (seen.has(w.storage) || !fillsIntermediate(graph, w) || !fillsVectors(w)) return false;
    seen.add(w.storage);
    const [maker, ...others] = uses.get(w.storage)!;
    const isOnlyMaker = others.every(({ outputs }) => outputs.every(({ storage }) => storage !== w.storage));
    if (!isOnlyMaker || expressionOf(maker!) !== 'a' || maker!.op.mutates || maker!.live !== null)
      return false;
    const between = graph.calls.slice(projections[0]!.at, rewrite.placeOf(maker!));
    return leaveAsIs(between, maker!.inputs);
  });
}
