import { type TypedArray, byteSize, typedArray } from '../base/dtype.ts';
import { ShapeError } from '../base/errors.ts';
import { observers, tellHostRead } from '../op/observers.ts';
import { bytesOfArray, toNumbers } from '../tensor/host-values.ts';
import { contiguous } from './copy/contiguous.ts';
import { type Shape, formatShape, sizeOf } from '../base/shape.ts';
import type { NestedNumbers } from './creation/from-values.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { noGrad } from '../tensor/tape/grad-mode.ts';

/** A tensor's elements in row-major order; float16 and bfloat16 as raw bits. Waits for the device. */
export function toTypedArray(x: Tensor): TypedArray {
  x.assertAlive('toTypedArray');
  if (observers.length > 0) tellHostRead(x);
  return readElements(x);
}

/** The same for internal reads, which are not reported to observers. */
export function readElements(x: Tensor): TypedArray {
  const data = typedArray(x.dtype, x.size);
  if (x.size === 0) return data;
  noGrad(() =>
    scope(() => {
      const source = contiguous(x);
      x.device.read(source.storage.buffer, source.offset * byteSize(x.dtype), bytesOfArray(data));
    }),
  );
  return data;
}

/** A tensor's elements in row-major order as JavaScript numbers. Waits for the device. */
export function toFlatArray(x: Tensor): number[] {
  return toNumbers(x.dtype, toTypedArray(x));
}

/** A tensor's elements as numbers in arrays nested as deep as it has dimensions: a number for none. */
export function toArray(x: Tensor): NestedNumbers {
  return nest(toFlatArray(x), x.shape, 0, 0);
}

/** The elements of `flat` from `start` on, nested by the dimensions from `dimension` on. */
function nest(flat: readonly number[], shape: Shape, dimension: number, start: number): NestedNumbers {
  if (dimension === shape.length) return flat[start]!;
  const size = sizeOf(shape.slice(dimension + 1));
  return Array.from({ length: shape[dimension]! }, (_, i) =>
    nest(flat, shape, dimension + 1, start + i * size),
  );
}

/** The value of a tensor of one element. Waits for the device. */
export function item(x: Tensor): number {
  if (x.size !== 1) throw new ShapeError(`item: takes a tensor of one element, not ${formatShape(x.shape)}.`);
  return toFlatArray(x)[0]!;
}
