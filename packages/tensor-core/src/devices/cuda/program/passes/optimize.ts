import type { Program } from '../../../../program/program.ts';
import { accumulateProducts } from './accumulate-products.ts';
import { carryLowPrecisionCopies } from './carry-low-precision-copies.ts';
import { fusePointwise } from './fuse-pointwise.ts';
import { mergeProducts } from './merge-products.ts';

/** A program that does the same in fewer kernels, or over fewer bytes. */
type Pass = (program: Program) => Program;

/** In their order: what a pass leaves, those behind it see. */
const passes: readonly Pass[] = [accumulateProducts, mergeProducts, carryLowPrecisionCopies, fusePointwise];

/** `program` as a GPU is to run it. */
export function optimize(program: Program): Program {
  return passes.reduce((before, pass) => pass(before), program);
}
