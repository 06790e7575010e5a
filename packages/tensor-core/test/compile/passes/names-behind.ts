import { expect } from 'vitest';
import type { Tensor } from '../../../src/index.ts';
import type { CudaDevice } from '../../../src/native.ts';
import type { Program } from '../../../src/compile/graph/program.ts';
import { failingPass, lostLiveCall } from '../symbolic/check-passes.ts';
import { runSymbolically } from '../symbolic/run-symbolically.ts';
import { opNames, programOf } from '../traced-program.ts';

/**
 * The names of the ops behind a pass of what `fn` does on a GPU that calculates nothing; in symbols the pass leaves what the
 * program leaves, and so does every other pass.
 */
export function namesBehind(
  { facts }: CudaDevice,
  pass: (program: Program) => Program,
  fn: () => readonly Tensor[],
): string[] {
  const { program } = programOf(fn);
  const changed = pass(program);
  expect(runSymbolically(changed, program, 'behind')).toEqual(runSymbolically(program, program, 'before'));
  expect(failingPass(program, facts)).toBeNull();
  // Each of these calls might be one that a run asks.
  expect(lostLiveCall(program, facts)).toBeNull();
  // Tensors that are made for a case alone are filled in it.
  return opNames(changed).filter((name) => name !== 'fill_');
}
