import { type TypedArray, byteSize, typedArray } from './dtype.ts';
import { ShapeError } from '../errors.ts';
import { observers, tellHostRead } from '../op/observers.ts';
import { bytesOfArray, toNumbers } from './host-values.ts';
import { contiguous } from '../ops/copy/contiguous.ts';
import { formatShape } from './shape.ts';
import { scope } from './scope.ts';
import type { Tensor } from './tensor.ts';
import { noGrad } from '../autograd/grad-mode.ts';

/** A tensor's elements in row-major order; float16 and bfloat16 as raw bits. Waits for the device. */
export function toTypedArray(x: Tensor): TypedArray {
  x.assertAlive('toTypedArray');
  if (observers.length > 0) tellHostRead(x);
  return readElements(x);
}

/** The same for what is no read by the host's program; observers are not told. */
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
export function toArray(x: Tensor): number[] {
  return toNumbers(x.dtype, toTypedArray(x));
}

/** The value of a tensor of one element. Waits for the device. */
export function item(x: Tensor): number {
  if (x.size !== 1) throw new ShapeError(`item: takes a tensor of one element, not ${formatShape(x.shape)}.`);
  return toArray(x)[0]!;
}
