import { type Tensor, noGrad } from '@roofline/tensor-core';
import type { ProcessGroup } from '../group/process-group.ts';
import type { Work } from '../group/work.ts';

/** Copies tensor i from the member `rootOf(i)` of a group to the others, and waits for that as `Work.wait` does. */
export function broadcastAll(
  group: ProcessGroup,
  tensors: readonly Tensor[],
  rootOf: (index: number) => number,
): void {
  startBroadcasts(group, tensors, rootOf).wait();
}

/** Begins that: together, so that those of different roots are sent at the same time, and in both directions of a link. */
export function startBroadcasts(
  group: ProcessGroup,
  tensors: readonly Tensor[],
  rootOf: (index: number) => number,
): Work {
  return noGrad(() =>
    group.coalesce(() => tensors.forEach((tensor, i) => void group.broadcast(tensor, rootOf(i)))),
  );
}
