import { expect } from 'vitest';
import type { Tensor } from '../../../src/index.ts';
import type { CudaDevice } from '../../../src/kernel-api.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { failingPass, lostLiveCall } from '../symbolic/check-passes.ts';
import { runSymbolically } from '../symbolic/run-symbolically.ts';
import { opNames, graphOf } from '../traced-graph.ts';

/**
 * The names of the ops after a pass over what `fn` does on a GPU that calculates nothing; in symbols the pass leaves what the
 * graph leaves, and so does every other pass.
 */
export function namesAfter(
  { facts }: CudaDevice,
  pass: (graph: Graph) => Graph,
  fn: () => readonly Tensor[],
): string[] {
  const { graph } = graphOf(fn);
  const changed = pass(graph);
  expect(runSymbolically(changed, graph, 'behind')).toEqual(runSymbolically(graph, graph, 'before'));
  expect(failingPass(graph, facts)).toBeNull();
  // Each of these calls might be one that a run asks.
  expect(lostLiveCall(graph, facts)).toBeNull();
  // Tensors made for a single case are filled in it.
  return opNames(changed).filter((name) => name !== 'fill_');
}
