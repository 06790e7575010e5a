import type { Tensor } from '@roofline/tensor-core';
import type { MemoryOffer } from './backend.ts';
import { gatherObjectNow } from './gather-objects.ts';
import { internalsOf } from './group-internals.ts';
import type { ProcessGroup } from './process-group.ts';

/**
 * Lets calls on whole contiguous tensors, alike on all ranks, work in the memory of all, for as long as the tensors live, where the
 * backend can and all ranks reach each other's; otherwise nothing changes. A collective of all ranks.
 */
export function makeSymmetric(group: ProcessGroup, tensors: readonly Tensor[]): void {
  const { symmetricMemory } = internalsOf('makeSymmetric', group);
  if (!symmetricMemory || tensors.length === 0) return;
  const memory = tensors.map(({ address, byteLength, storage }) => ({ address, byteLength, storage }));
  const offers = gatherObjectNow<MemoryOffer>(
    group,
    symmetricMemory.offer(memory.map(({ address }) => address)),
  );
  const opened = symmetricMemory.open(offers);
  const isReached = gatherObjectNow(group, opened !== null);
  if (opened !== null && !isReached.includes(false)) symmetricMemory.add(memory, opened);
}
