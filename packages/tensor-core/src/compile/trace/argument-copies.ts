import { withoutAutocast } from '../../op/autocast/autocast.ts';
import { noGrad } from '../../tensor/tape/grad-mode.ts';
import { applyOne } from '../../op/apply.ts';
import { copyOp } from '../../ops/copy/contiguous.ts';
import { copyInPlace } from '../../ops/copy/in-place.ts';
import { byteSize } from '../../base/dtype.ts';
import { extentOf, overlapsItself } from '../../tensor/storage/extent.ts';
import { keep } from '../../tensor/lifetime/scope.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { Trace } from './trace.ts';

/**
 * A copy for a function to work on in place of its caller's tensor, with the same strides, at the start of a storage of its
 * own: strides decide what is a view and what is copied.
 */
export function copyOfArgument(x: Tensor): Tensor {
  const { dtype, shape, strides, offset } = x;
  const { start, end } = extentOf(x);
  const elements = (end - start) / byteSize(dtype);
  // Gaps may be large and belong to others, so only elements are copied; overlapping ones can only be copied as whole memory.
  if (elements > x.size && !overlapsItself(x)) {
    const memory = Tensor.allocate(x.device, dtype, [elements]);
    const argumentCopy = new Tensor(memory.storage.retain(), dtype, shape, strides);
    memory.dispose();
    noGrad(() => copyInPlace(argumentCopy, x));
    return argumentCopy;
  }
  using flat = new Tensor(x.storage.retain(), dtype, [elements], undefined, offset);
  using copy = contiguousCopy(flat);
  return new Tensor(copy.storage.retain(), dtype, shape, strides);
}

/** A contiguous copy of `x`, in `memory`, of its shape and dtype, if that is given. */
export function contiguousCopy(x: Tensor, memory: Tensor | null = null): Tensor {
  return noGrad(() => withoutAutocast(() => applyOne(copyOp, [x], undefined, memory)));
}

/** Copies written arguments from their stand-ins to the caller's tensors, unless either is disposed of. */
export function writeBack(
  indices: readonly number[],
  tensors: readonly Tensor[],
  argumentCopies: readonly (Tensor | undefined)[],
): void {
  for (const index of indices) {
    const [target, argumentCopy] = [tensors[index]!, argumentCopies[index]!];
    if (!target.isDisposed && !argumentCopy.isDisposed) noGrad(() => copyInPlace(target, argumentCopy));
  }
}

/** Replaces gradients that lie in an argument's stand-in by copies, because they outlive it. */
export function takeOutOfArgumentCopies({ gradients }: Trace, argumentCopies: readonly Tensor[]): void {
  for (const { leaf } of gradients.touched) {
    const { grad } = leaf;
    if (!grad || grad.isDisposed) continue;
    if (!argumentCopies.some(({ storage }) => storage === grad.storage)) continue;
    leaf.grad = keep(contiguousCopy(grad));
    grad.dispose();
  }
}

/** Replaces constants by copies of the graph's own: the function may have handed them to someone who writes to them. */
export function ownConstants({ storages }: Trace): void {
  storages.forEach((storage, number) => {
    const { dtype, byteLength, source } = storage;
    if (source.kind !== 'constant') return;
    using shared = new Tensor(source.storage.retain(), dtype, [byteLength / byteSize(dtype)]);
    using own = contiguousCopy(shared);
    storages[number] = { ...storage, source: { kind: 'constant', storage: own.storage.retain() } };
    source.storage.release();
  });
}
