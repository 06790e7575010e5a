import type { CudaProperties } from '@roofline/cuda';
import { costOf } from '../../op/cost.ts';
import type { Call } from '../graph/graph.ts';
import type { BranchRule } from './branches.ts';

/** How a schedule chooses what runs beside what: by a count of work, all that can, or nothing. */
export type BranchChoice = 'auto' | 'always' | 'never';

/** All that can run beside others does, for a test of it. */
export const besideWherePossible: BranchRule = { fewest: 1, most: Infinity, isWorthIt: () => true };

// What one multiprocessor of an H200 does in some 20 microseconds, and in 2: less is not worth its events.
const long = { flops: 1e8, bytesMoved: 6e5 };
const brief = { flops: 1e7, bytesMoved: 6e4 };

/**
 * Calls run beside short ones, which leave multiprocessors idle. Beside long ones they would only take theirs, and power: on an
 * H200, steps of small models became 2 to 5 % faster, those of larger ones no faster or slower; see docs/compiled-steps.md.
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

/**
 * On how many multiprocessors a kernel beside others may stay: with half of them, steps of small models were fastest on an H200.
 */
export function multiprocessorsBeside({ multiprocessors }: Pick<CudaProperties, 'multiprocessors'>): number {
  return Math.max(1, multiprocessors >> 1);
}
