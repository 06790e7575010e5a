import { isGradEnabled } from '../tensor/tape/grad-mode.ts';
import type { Device } from '../tensor/device.ts';
import { extentOf } from '../tensor/storage/extent.ts';
import { sameShape } from '../base/shape.ts';
import { Tensor } from '../tensor/tensor.ts';
import type { TensorSpec } from '../base/memory-view.ts';

/** Kernels may write so many bytes at once, so an output must be aligned to them. */
export const widestWriteBytes = 16;

/**
 * A handle to `destination` as an op's output of `spec`; null if the output needs memory of its own, because the destination
 * has another shape, dtype or device, shares storage with an input, or is in use by something under way.
 */
export function outputIn(
  destination: Tensor,
  { shape, dtype }: TensorSpec,
  device: Device,
  inputs: readonly Tensor[],
): Tensor | null {
  const { storage } = destination;
  const isLike =
    destination.dtype === dtype && destination.device === device && sameShape(destination.shape, shape);
  if (!isLike || !destination.isContiguous || destination.isDisposed || isGradEnabled()) return null;
  if (destination.address % widestWriteBytes !== 0) return null;
  if (inputs.some((input) => input.storage === storage)) return null;
  const region = extentOf(destination);
  if (storage.holdsOn(region).length > 0) return null;
  storage.noteWrite(region);
  return new Tensor(storage.retain(), dtype, shape, destination.strides, destination.offset);
}
