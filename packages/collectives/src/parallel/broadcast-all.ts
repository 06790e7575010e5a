import { type Tensor, noGrad } from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import type { ProcessGroup } from '../group/process-group.ts';
import type { Work } from '../group/work.ts';

/** Copies tensor i from the member `rootOf(i)` of a group to the others, and waits for that as `Work.wait` does. */
export function broadcastAll(
  group: ProcessGroup,
  tensors: readonly Tensor[],
  rootOf: (index: number) => number,
): void {
  for (const work of startBroadcasts(group, tensors, rootOf)) work.wait();
}

/**
 * Begins that. Together, so that NCCL sends those of different roots at the same time, and in both directions of a link; in a compiled
 * function one by one, as replays have them.
 */
export function startBroadcasts(
  group: ProcessGroup,
  tensors: readonly Tensor[],
  rootOf: (index: number) => number,
): Work[] {
  const start = () => tensors.map((tensor, i) => group.broadcast(tensor, rootOf(i)));
  return noGrad(() => (currentTrace() ? start() : [group.coalesce(start)]));
}
