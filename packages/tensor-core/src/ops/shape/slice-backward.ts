import { applyOne } from '../../op/apply.ts';
import { byteSize } from '../../base/dtype.ts';
import { defineOp } from '../../op/op.ts';
import { type Shape, contiguousStrides, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';

interface SliceBackwardAttributes {
  readonly shape: Shape;
  readonly dimension: number;
  readonly start: number;
  readonly step: number;
}

const sliceBackwardOp = defineOp<SliceBackwardAttributes>({
  name: 'sliceBackward',
  autocast: 'none',
  infer: ([g], { shape }) => [{ shape, dtype: g!.dtype }],
  cuda: {
    kind: 'custom',
    strided: true,
    launch(context, [g], [output], { dimension, start, step }) {
      const { dtype, byteLength, strides } = output!;
      const address = output!.address;
      context.fillBytes(address, 0, byteLength);
      context.copy(
        { address: g!.address, dtype, shape: g!.shape, strides: g!.strides },
        {
          address: address + start * strides[dimension]! * byteSize(dtype),
          dtype,
          shape: g!.shape,
          strides: strides.map((stride, i) => (i === dimension ? stride * step : stride)),
        },
      );
    },
  },
  cpu: {
    kind: 'host',
    run([g], [output], { shape, dimension, start, step }) {
      const [source, target] = [g!.data, output!.data];
      const row = contiguousStrides(shape)[dimension]!;
      const [length, whole] = [g!.shape[dimension]!, shape[dimension]!];
      const outer = sizeOf(shape.slice(0, dimension));
      target.fill(0 as never);
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < length; i++) {
          const from = (o * length + i) * row;
          target.set(source.subarray(from, from + row) as never, (o * whole + start + i * step) * row);
        }
      }
    },
  },
});

/** Zeros of `shape`, with `g` where a slice was taken. */
export function sliceBackward(
  g: Tensor,
  shape: Shape,
  slice: Omit<SliceBackwardAttributes, 'shape'>,
): Tensor {
  const { dimension, start, step } = slice;
  return applyOne(sliceBackwardOp, [g], { shape, dimension, start, step });
}
