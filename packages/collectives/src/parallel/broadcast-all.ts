import { type Tensor, noGrad } from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import type { ProcessGroup } from '../group/process-group.ts';

/**
 * Copies tensor i from the member `rootOf(i)` of a group to the others, and waits for that as `Work.wait` does. Together, so that NCCL
 * sends those of different roots at the same time, and in both directions of a link.
 */
export function broadcastAll(
  group: ProcessGroup,
  tensors: readonly Tensor[],
  rootOf: (index: number) => number,
): void {
  const begin = () => tensors.map((tensor, i) => group.broadcast(tensor, rootOf(i)));
  noGrad(() => {
    // Replays have the order of single calls.
    const works = currentTrace() ? begin() : [group.coalesce(begin)];
    for (const work of works) work.wait();
  });
}
