import type { Program } from '../graph/graph.ts';
import type { CudaProperties } from '../../cuda/kernel.ts';
import { accumulateEmbeddings } from './accumulate-embeddings.ts';
import { accumulateProducts } from './accumulate-products.ts';
import { carryLowPrecisionCopies } from './carry-low-precision-copies.ts';
import { finishTogether } from './finish-together.ts';
import { foldCopies } from './fold-copies.ts';
import { freeFirst } from './free-first.ts';
import { fuseEdges } from './fuse-prologues-epilogues.ts';
import { fusePointwise } from './fuse-pointwise.ts';
import { joinCrossEntropy } from './join-cross-entropy.ts';
import { mergeProducts } from './merge-products.ts';
import { pairCalls } from './pair-calls.ts';
import { scaleInUpdate } from './scale-in-update.ts';
import { updateEarly } from './update-early.ts';

/** A program that does the same in fewer kernels, or over fewer bytes. */
type Pass = (program: Program, properties: CudaProperties, notCarried: ReadonlySet<string>) => Program;

/** In their order: what a pass leaves, those behind it see. */
const passes: readonly Pass[] = [
  accumulateProducts,
  mergeProducts,
  joinCrossEntropy,
  accumulateEmbeddings,
  (program, _, notCarried) => carryLowPrecisionCopies(program, notCarried),
  foldCopies,
  pairCalls,
  finishTogether,
  fusePointwise,
  fuseEdges,
  scaleInUpdate,
  updateEarly,
  freeFirst,
];

/** `program` as a GPU of these properties is to run it; see `carryLowPrecisionCopies` for `notCarried`. */
export function optimize(
  program: Program,
  properties: CudaProperties,
  notCarried: ReadonlySet<string> = new Set(),
): Program {
  return passes.reduce((before, pass) => pass(before, properties, notCarried), program);
}
