import { type Tensor, noGrad } from '@roofline/tensor-core';
import type { ProcessGroup } from '../group/process-group.ts';

/** Copies tensor i from the member `rootOf(i)` of a group to the others, and waits for that as `Work.wait` does. */
export function broadcastAll(
  group: ProcessGroup,
  tensors: readonly Tensor[],
  rootOf: (index: number) => number,
): void {
  const works = noGrad(() => tensors.map((tensor, i) => group.broadcast(tensor, rootOf(i))));
  for (const work of works) work.wait();
}
