import type { Graph } from '../graph/graph.ts';
import type { CudaProperties } from '@roofline/cuda';
import { accumulateEmbeddings } from './accumulate-embeddings.ts';
import { accumulateProducts } from './accumulate-products.ts';
import { carryLowPrecisionCopies } from './carry-low-precision-copies.ts';
import { finishTogether } from './finish-together.ts';
import { foldCopies } from './fold-copies.ts';
import { freeFirst } from './free-first.ts';
import { fuseProloguesAndEpilogues } from './fuse-prologues-epilogues.ts';
import { fusePointwise } from './fuse-pointwise.ts';
import { joinCrossEntropy } from './join-cross-entropy.ts';
import { mergeProducts } from './merge-products.ts';
import { pairCalls } from './pair-calls.ts';
import { scaleInUpdate } from './scale-in-update.ts';
import { updateEarly } from './update-early.ts';

/** Rewrites a graph into one that does the same with fewer kernels, fewer bytes moved, or less memory. */
type Pass = (graph: Graph, properties: CudaProperties, notCarried: ReadonlySet<string>) => Graph;

/** In their order. */
const passes: readonly Pass[] = [
  accumulateProducts,
  mergeProducts,
  joinCrossEntropy,
  accumulateEmbeddings,
  (graph, _, notCarried) => carryLowPrecisionCopies(graph, notCarried),
  foldCopies,
  pairCalls,
  finishTogether,
  fusePointwise,
  fuseProloguesAndEpilogues,
  scaleInUpdate,
  updateEarly,
  freeFirst,
];

/** The graph as a GPU of these properties is to run it; see `carryLowPrecisionCopies` for `notCarried`. */
export function optimize(
  graph: Graph,
  properties: CudaProperties,
  notCarried: ReadonlySet<string> = new Set(),
): Graph {
  return passes.reduce((before, pass) => pass(before, properties, notCarried), graph);
}
