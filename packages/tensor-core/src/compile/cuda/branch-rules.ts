import type { CudaProperties } from '@roofline/cuda';
import { costOf } from '../../op/cost.ts';
import type { Call } from '../graph/graph.ts';
import type { BranchRule } from './branches.ts';

/** The rule of `always`. */
export const besideWherePossible: BranchRule = { fewest: 1, most: Infinity, isWorthIt: () => true };

// What one multiprocessor of an H200 does in some 20 microseconds, and in 2: less is not worth its events.
const long = { flops: 1e8, bytesMoved: 6e5 };
const brief = { flops: 1e7, bytesMoved: 6e4 };

/**
 * Calls overlap with short ones, which leave multiprocessors idle. Overlapping with long ones would only take theirs, and power:
 * on an H200 steps of small models became 2 to 5 % faster, those of larger ones no faster or slower; see docs/compiled-steps.md.
 */
export function besideShortCalls({ multiprocessors }: Pick<CudaProperties, 'multiprocessors'>): BranchRule {
  const isLonger = ({ op, inputs, outputs, attributes }: Call, { flops, bytesMoved }: typeof long) => {
    const cost = costOf(op, inputs, outputs, attributes as never);
    return cost.flops > flops * multiprocessors || cost.bytesMoved > bytesMoved * multiprocessors;
  };
  return {
    fewest: 4,
    most: 256,
    isWorthIt: (call, beside) =>
      isLonger(call, brief) && 4 * beside.filter((other) => isLonger(other, long)).length <= beside.length,
  };
}

/** How many multiprocessors a kernel on a branch may occupy. Half made steps of small models fastest on an H200. */
export function multiprocessorsBeside({ multiprocessors }: Pick<CudaProperties, 'multiprocessors'>): number {
  return Math.max(1, multiprocessors >> 1);
}
