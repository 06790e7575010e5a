import { DeviceError, type Storage, type Tensor, formatShape } from '@roofline/tensor-core';
import { type StoredElements, shareMemory } from '@roofline/tensor-core/kernel-api';

/** How a call uses a tensor's memory. */
export interface MemoryUse {
  readonly isWrite: boolean;
  /** Calls that share it run one after the other. */
  readonly order: object;
}

interface UseUnderWay extends MemoryUse {
  readonly op: string;
  readonly elements: StoredElements;
  readonly isContiguous: boolean;
}

const underWay = new WeakMap<Storage, Set<UseUnderWay>>();

/**
 * Notes that a call works on a tensor until the function that is returned is called. Throws a DeviceError where another
 * one does that might come before or after it.
 */
export function noteUse(op: string, tensor: Tensor, use: MemoryUse): () => void {
  const { storage, dtype, shape, strides, offset, isContiguous } = tensor;
  const uses = underWay.get(storage) ?? new Set();
  const added = { ...use, op, elements: { storage, dtype, shape, strides, offset }, isContiguous };
  for (const other of uses) {
    if (!mayRace(other, added) || !shareMemory(other.elements, added.elements)) continue;
    throw new DeviceError(
      `${op}: ${other.op}, which is under way, works on memory of the tensor ${formatShape(shape)}; wait() for that first.`,
    );
  }
  underWay.set(storage, uses.add(added));
  return () => void uses.delete(added);
}

/** Whether a call may see what another one, on the same elements, is yet to write, or write what it is yet to read. */
function mayRace(earlier: UseUnderWay, later: UseUnderWay): boolean {
  const [isEarlierCopy, isLaterCopy] = [!earlier.isContiguous, !later.isContiguous];
  // What is read from a copy has been read.
  if (!earlier.isWrite && isEarlierCopy) return false;
  // Copies are made as a call begins, and copied back when it has ended.
  if (earlier.order === later.order) return earlier.isWrite && (isEarlierCopy || isLaterCopy);
  return earlier.isWrite || later.isWrite;
}
