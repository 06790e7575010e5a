import { isDeepStrictEqual } from 'node:util';
import { accumulateEmbeddings } from '../../../src/compile/passes/accumulate-embeddings.ts';
import { accumulateProducts } from '../../../src/compile/passes/accumulate-products.ts';
import { carryLowPrecisionCopies } from '../../../src/compile/passes/carry-low-precision-copies.ts';
import { finishTogether } from '../../../src/compile/passes/finish-together.ts';
import { foldCopies } from '../../../src/compile/passes/fold-copies.ts';
import { freeFirst } from '../../../src/compile/passes/free-first.ts';
import { fuseProloguesAndEpilogues } from '../../../src/compile/passes/fuse-prologues-epilogues.ts';
import { fusePointwise } from '../../../src/compile/passes/fuse-pointwise.ts';
import { joinCrossEntropy } from '../../../src/compile/passes/join-cross-entropy.ts';
import { isCast } from '../../../src/compile/passes/is-op.ts';
import { mergeProducts } from '../../../src/compile/passes/merge-products.ts';
import { pairCalls } from '../../../src/compile/passes/pair-calls.ts';
import { readTogether } from '../../../src/compile/passes/read-together.ts';
import { rematerialize } from '../../../src/compile/passes/rematerialize.ts';
import { rewritesOf } from '../../../src/compile/passes/rewrites-of.ts';
import { scaleInUpdate } from '../../../src/compile/passes/scale-in-update.ts';
import { updateEarly } from '../../../src/compile/passes/update-early.ts';
import { withoutRepeatedCalls } from '../../../src/compile/passes/without-repeated-calls.ts';
import { Arena, partsOf } from '../../../src/compile/cuda/arena.ts';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { takenOver } from '../../../src/compile/cuda/in-place.ts';
import type { CudaProperties } from '@roofline/cuda';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { runSymbolically } from './run-symbolically.ts';

type Pass = (graph: Graph, properties: CudaProperties) => Graph;

const passes: Readonly<Record<string, Pass>> = {
  withoutRepeatedCalls: (graph) => withoutRepeatedCalls(graph),
  accumulateProducts,
  mergeProducts,
  joinCrossEntropy,
  accumulateEmbeddings,
  carryLowPrecisionCopies: (graph) => carryLowPrecisionCopies(graph),
  foldCopies,
  pairCalls,
  finishTogether,
  fusePointwise,
  fuseProloguesAndEpilogues,
  scaleInUpdate,
  updateEarly,
  freeFirst,
  // As for a budget that nothing can keep.
  rematerialize: (graph) => rematerialize(graph, 0).graph,
  // As for one that leaves room at some calls.
  keepRepeated: (graph) => {
    const { graph: least, bytes } = rematerialize(graph, 0);
    const most = Math.ceil(1.3 * bytes);
    const kept = withoutRepeatedCalls(least, most);
    if (fullestCall(partsOf(kept)).bytes > most)
      throw new Error(`keepRepeated needs more than ${most} bytes`);
    return kept;
  },
  readTogether,
};

/**
 * The first pass after which a graph leaves something other than before, and what; null for none. After all passes, calls
 * write where the arena lets them write over their inputs.
 */
export function failingPass(
  traced: Graph,
  properties: CudaProperties,
  expected = runSymbolically(traced, traced, 'before'),
): string | null {
  const failureOf = (name: string, graph: Graph, over?: ReadonlyMap<number, number>): string | null => {
    const ops = graph.calls.map(({ op }) => op.name).join(' ');
    try {
      const left = runSymbolically(graph, traced, 'behind', over);
      const differs = [...expected].find(
        ([number, elements]) => !isDeepStrictEqual(left.get(number), elements),
      );
      return differs ? `${name}: storage ${differs[0]} differs; ${ops}` : null;
    } catch (error) {
      return `${name}: ${(error as Error).message} ${ops}`;
    }
  };
  let graph = traced;
  for (const [name, pass] of Object.entries(passes)) {
    const before = graph;
    graph = pass(graph, properties);
    const failure = isUnchanged(before, graph) ? null : failureOf(name, graph);
    if (failure) return failure;
  }
  return failureOf('takenOver', graph, takenOver(graph));
}

/**
 * What any pass has made of a call with per-run attributes that did not stay a separate call; null where all did. Calls whose
 * attributes never change, and updates, which ask only for their coefficients, are left out.
 */
export function lostLiveCall(traced: Graph, properties: CudaProperties): string | null {
  const mark = 1_000_000;
  for (const [at, { op }] of traced.calls.entries()) {
    const { byTensor, scales, copied } = rewritesOf({ op });
    const isUpdate = byTensor || scales || copied;
    if (isCast(op) || isUpdate || op.name.startsWith('crossEntropy')) continue;
    const calls = traced.calls.map((call, i) => (i === at ? { ...call, live: mark } : call));
    let graph: Graph = { ...traced, calls };
    for (const [name, pass] of Object.entries(passes)) {
      graph = pass(graph, properties);
      const left = graph.calls.filter(({ live }) => live === mark);
      if (left.length !== 1 || left[0]!.op !== op) return `${name} takes ${op.name} away, which may be live`;
    }
  }
  return null;
}

/** The size of a graph: its calls, their operands, the bytes of these, and those of its arena. */
type Footprint = readonly [calls: number, operands: number, operandBytes: number, arenaBytes: number];

/** The footprint of a graph after each pass. */
export function footprints(traced: Graph, properties: CudaProperties): Record<string, Footprint> {
  let graph = traced;
  const behind = Object.entries(passes).map(([name, pass]) => {
    graph = pass(graph, properties);
    return [name, footprintOf(graph)] as const;
  });
  return Object.fromEntries([['traced', footprintOf(traced)], ...behind]);
}

function footprintOf(graph: Graph): Footprint {
  const operands = graph.calls.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]);
  const bytes = operands.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return [graph.calls.length, operands.length, bytes, new Arena(graph).byteLength];
}

function isUnchanged(before: Graph, after: Graph): boolean {
  return (
    before.storages === after.storages &&
    before.calls.length === after.calls.length &&
    before.calls.every((call, i) => call === after.calls[i])
  );
}
