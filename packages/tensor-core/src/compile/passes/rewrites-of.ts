import type { KernelRewrites } from '../../op/kernel-rewrites.ts';
import type { Call } from '../graph/graph.ts';

const none: KernelRewrites<never> = {};

/** What passes may make of a call of this op. */
export function rewritesOf({ op: { cuda } }: Pick<Call, 'op'>): KernelRewrites<never> {
  return cuda.kind === 'custom' ? (cuda.rewrites ?? none) : none;
}
