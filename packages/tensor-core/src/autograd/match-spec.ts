import type { TensorSpec } from '../base/memory-view.ts';
import { DeviceError } from '@roofline/cuda/host';
import { ShapeError } from '../base/errors.ts';
import { formatShape, sameShape } from '../base/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { cast } from '../ops/copy/cast.ts';
import { sum } from '../ops/reduce/reductions.ts';
import { reshape } from '../ops/shape/views.ts';

/**
 * Sums a gradient over the dimensions along which its tensor was broadcast, and casts it to its dtype. Throws a ShapeError,
 * which names `owner`, for a gradient of another shape.
 */
export function matchSpec(owner: string, gradient: Tensor, spec: TensorSpec): Tensor {
  const summed = sumToShape(owner, gradient, spec);
  return summed.dtype === spec.dtype ? summed : cast(summed, spec.dtype);
}

function sumToShape(owner: string, gradient: Tensor, { shape }: TensorSpec): Tensor {
  if (sameShape(gradient.shape, shape)) return gradient;
  const lead = gradient.rank - shape.length;
  if (lead < 0 || shape.some((length, i) => length !== 1 && length !== gradient.shape[i + lead])) {
    throw new ShapeError(
      `${owner}: the gradient of an input ${formatShape(shape)} cannot be ${formatShape(gradient.shape)}; it must have ` +
        'its shape, or one that it broadcasts to.',
    );
  }
  const dims: number[] = [];
  for (let i = 0; i < gradient.rank; i++) {
    if (i < lead || (shape[i - lead] === 1 && gradient.shape[i] !== 1)) dims.push(i);
  }
  return reshape(dims.length === 0 ? gradient : sum(gradient, { dims }), shape);
}

/**
 * Throws a ShapeError or DeviceError unless a backward pass can begin at `root` with `gradient`, or with 1 if it is absent.
 */
export function checkSeed(root: Tensor, gradient: Tensor | undefined): void {
  if (gradient ? !sameShape(gradient.shape, root.shape) : root.size !== 1) {
    throw new ShapeError(
      `backward: the tensor is ${formatShape(root.shape)} and ` +
        (gradient
          ? `its gradient ${formatShape(gradient.shape)}; they must be equal.`
          : 'needs a gradient of its shape.'),
    );
  }
  if (gradient && gradient.device !== root.device) {
    throw new DeviceError(
      `backward: the tensor ${formatShape(root.shape)} is on ${root.device.label} and its gradient on ` +
        `${gradient.device.label}; move that with .to(device).`,
    );
  }
}

/** The error for a gradient on another device than its leaf. */
export function cameElsewhere(gradient: Tensor, { shape, device }: Tensor): DeviceError {
  return new DeviceError(
    `backward: the gradient of ${formatShape(shape)} on ${device.label} came on ${gradient.device.label}; a backward of ` +
      'your own must give gradients on the device of its inputs.',
  );
}
