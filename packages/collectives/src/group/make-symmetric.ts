import { RooflineError, type Tensor, requireTensor } from '@roofline/tensor-core';
import type { MemoryOffer, SharedMemory } from './backend.ts';
import { gatherObjectNow } from './gather-objects.ts';
import { internalsOf } from './group-internals.ts';
import type { ProcessGroup } from './process-group.ts';

const owner = 'makeSymmetric';

/**
 * Lets a group's calls on these tensors work in the memory of all ranks, each of which loads and stores that of the others (as
 * torch.distributed._symmetric_memory.rendezvous): sums and averages of whole float32 tensors in place, and broadcasts that
 * `coalesce` joins. A collective: all ranks give as many tensors, alike and in one order. It holds as long as the tensors live.
 *
 * Gives whether that is so, which is the same on all ranks: NVLink must connect the GPUs of all, at most eight of one host, and the
 * tensors must be contiguous; elsewhere nothing changes. DistributedDataParallel and ShardedOptimizer do it with what they send.
 * Throws a RooflineError (code ARGUMENT) for what is no group or no list, and one of our errors for tensors that the group does not
 * take.
 */
export function makeSymmetric(group: ProcessGroup, tensors: readonly Tensor[]): boolean {
  const { symmetricMemory, checkInput } = internalsOf(owner, group);
  if (!Array.isArray(tensors)) throw new RooflineError('ARGUMENT', `${owner}: takes a list of tensors.`);
  for (const x of tensors as readonly Tensor[]) {
    requireTensor(owner, x);
    checkInput(owner, x);
  }
  if (!symmetricMemory || tensors.length === 0) return false;
  const memory = tensors.map(memoryOf);
  const given = gatherObjectNow<Given>(group, {
    layout: layoutOf(tensors),
    offer: symmetricMemory.offer(memory.map(({ address }) => address)),
  });
  const areAlike = given.every(({ layout }) => layout !== null && layout === given[0]!.layout);
  const opened = areAlike ? symmetricMemory.open(given.map(({ offer }) => offer)) : null;
  const isReached = !gatherObjectNow(group, opened !== null).includes(false);
  if (opened !== null && isReached) symmetricMemory.add(memory, opened);
  return isReached;
}

function memoryOf({ address, byteLength, storage }: Tensor): SharedMemory {
  const start = address - storage.buffer.address;
  const isHere = () =>
    storage.references > 0 && !storage.isAway && storage.buffer.address + start === address;
  return { address, byteLength, isHere };
}

/** What ranks tell each other. */
interface Given {
  readonly layout: string | null;
  readonly offer: MemoryOffer;
}

/** What must be alike, so that all ranks find a call's memory or none does; null for tensors that calls would copy. */
function layoutOf(tensors: readonly Tensor[]): string | null {
  if (!tensors.every(({ isContiguous }) => isContiguous)) return null;
  const places = new Map<number, number>();
  return tensors
    .map(({ address, byteLength }, i) => {
      if (!places.has(address)) places.set(address, i);
      return `${byteLength} at ${places.get(address)}`;
    })
    .join();
}
