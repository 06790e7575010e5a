import type { TensorSpec } from '../op/memory-view.ts';
import { sameShape } from '../tensor/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { cast } from '../ops/copy/cast.ts';
import { sum } from '../ops/reduce/reductions.ts';
import { reshape } from '../ops/shape/views.ts';

/** Sums a gradient over the dimensions along which its tensor was broadcast, and casts it to its dtype. */
export function matchSpec(gradient: Tensor, spec: TensorSpec): Tensor {
  const summed = sumToShape(gradient, spec);
  return summed.dtype === spec.dtype ? summed : cast(summed, spec.dtype);
}

function sumToShape(gradient: Tensor, { shape }: TensorSpec): Tensor {
  if (sameShape(gradient.shape, shape)) return gradient;
  const lead = gradient.rank - shape.length;
  const dims: number[] = [];
  for (let i = 0; i < gradient.rank; i++) {
    if (i < lead || (shape[i - lead] === 1 && gradient.shape[i] !== 1)) dims.push(i);
  }
  return reshape(dims.length === 0 ? gradient : sum(gradient, { dims }), shape);
}
