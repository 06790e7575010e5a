import type { Place } from '@roofline/cuda/host';
import { formatShape } from '../../base/shape.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { Trace } from './trace.ts';
import { mapInstances } from './values.ts';

/** For an error: a tensor that stays behind, what to do about it, and where it was made. */
export interface EscapedTensor {
  readonly what: string;
  readonly remedy: string;
  readonly place: Place | null | undefined;
}

/** A tensor that the function made and that is still alive, but neither in its result nor a gradient; null for none. */
export function findEscapedTensor(trace: Trace, result: unknown): EscapedTensor | null {
  const handedOver = new Set<Tensor>();
  mapInstances(result, Tensor, (x) => handedOver.add(x));
  for (const { leaf } of trace.gradients.touched) if (leaf.grad) handedOver.add(leaf.grad);
  const references = new Map<Storage, number>();
  for (const { storage } of handedOver) references.set(storage, (references.get(storage) ?? 0) + 1);
  for (const storage of trace.madeStorages())
    if (storage.references > (references.get(storage) ?? 0)) return describe(trace, storage);
  return null;
}

function describe(trace: Trace, storage: Storage): EscapedTensor {
  const { call, output } = trace.writerOf(storage) ?? {};
  const place = call?.place;
  const shape = formatShape(output?.shape ?? []);
  if (trace.gradients.taken.has(storage)) {
    const what = `the gradient of a leaf ${shape}, which the function has taken from it,`;
    return { what, remedy: 'dispose() of it, as zeroGrad() does', place };
  }
  const what = `a tensor ${shape} of the op ${call?.op.name ?? 'empty'}`;
  return { what, remedy: 'make it outside', place };
}
