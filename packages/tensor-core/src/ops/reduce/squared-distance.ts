import type { HostArray } from '../../op/cpu-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { defineOp } from '../../op/op.ts';
import { type Shape, broadcastStrides, contiguousStrides, sizeOf } from '../../tensor/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { numbersOf, storeNumbers } from '../support/host-numbers.ts';
import { type ReductionAttributes, reducedShape } from './reductions.ts';

type Floats = Float32Array | Float64Array;

// On the CPU in JavaScript: ONNX Runtime would first copy x to float64, and then take a pass for each node.

const float64MeanOp = defineOp<ReductionAttributes>({
  name: 'float64Mean',
  autocast: 'none',
  infer: ([x], attributes) => [{ shape: reducedShape(x!.shape, attributes), dtype: 'float64' }],
  cost: (inputs, outputs) => ({
    flops: sizeOf(inputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: { kind: 'reduction', identity: 'zero', combine: 'x + y', finish: 'x / n' },
  cpu: { kind: 'host', run: ([x], [mean], attributes) => meanOnHost(x!, mean!, attributes) },
});

/** The mean over `dims`, which are ascending and stay with length one, in float64. */
export function float64Mean(x: Tensor, dims: readonly number[]): Tensor {
  return applyOne(float64MeanOp, [x], { dims, keepDims: true });
}

/** Sums up distances from the first element, so that equal elements have exactly their mean. */
function meanOnHost(x: HostArray, mean: HostArray, attributes: ReductionAttributes): void {
  const values = numbersOf(x) as Floats;
  const sums = mean.data as Float64Array;
  sums.fill(0);
  const origins = new Float64Array(sums.length);
  const isKnown = new Uint8Array(sums.length);
  forEachRow(x.shape, reducedShape(x.shape, attributes), (first, length, at, step) => {
    if (isKnown[at] === 0) {
      isKnown[at] = 1;
      for (let i = 0; i < (step === 0 ? 1 : length); i++) origins[at + i] = values[first + i]!;
    }
    if (step === 0) {
      const origin = origins[at]!;
      let sum = 0;
      for (let i = first; i < first + length; i++) sum += values[i]! - origin;
      sums[at]! += sum;
    } else {
      for (let i = 0; i < length; i++) sums[at + i]! += values[first + i]! - origins[at + i]!;
    }
  });
  const count = sums.length === 0 ? 1 : values.length / sums.length;
  for (let i = 0; i < sums.length; i++) sums[i] = origins[i]! + sums[i]! / count;
}

const squaredDistanceOp = defineOp({
  name: 'squaredDistance',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: 'float64' }],
  saves: () => ({ inputs: [0, 1] }),
  gradient: ({ gradients, input }) => [
    applyOne(squaredDistanceBackwardOp, [input(0), input(1), gradients[0]!], undefined),
    null,
  ],
  cuda: { kind: 'pointwise', expressions: () => ['(a - b) * (a - b)'] },
  cpu: {
    kind: 'host',
    run([x, mean], [y]) {
      const [values, means, squares] = [numbersOf(x!) as Floats, mean!.data as Floats, y!.data as Floats];
      forEachRow(x!.shape, mean!.shape, (first, length, at, step) => {
        for (let i = 0; i < length; i++) {
          const distance = values[first + i]! - means[at + i * step]!;
          squares[first + i] = distance * distance;
        }
      });
    },
  },
});

/** (x - mean)² in float64, of an `x` of any floating-point dtype and a float64 `mean` that needs no gradient. */
export function squaredDistance(x: Tensor, mean: Tensor): Tensor {
  return applyOne(squaredDistanceOp, [x, mean], undefined);
}

/** 2 · (x - mean) · g, rounded once to x's dtype. */
const squaredDistanceBackwardOp = defineOp({
  name: 'squaredDistanceBackward',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  cuda: { kind: 'pointwise', expressions: () => ['2 * (a - b) * c'] },
  cpu: {
    kind: 'host',
    run([x, mean, g], [dx]) {
      const [values, means] = [numbersOf(x!) as Floats, mean!.data as Floats];
      const gradients = g!.data as Floats;
      const results =
        dx!.data instanceof Uint16Array ? new Float32Array(values.length) : (dx!.data as Floats);
      forEachRow(x!.shape, mean!.shape, (first, length, at, step) => {
        for (let i = 0; i < length; i++) {
          results[first + i] = 2 * (values[first + i]! - means[at + i * step]!) * gradients[first + i]!;
        }
      });
      if (results !== dx!.data) storeNumbers(dx!, results);
    },
  },
});

/**
 * Calls `visit` for each row of the last dimension of a tensor, with where it begins and its length, and where it lies in
 * a tensor of shape `folded`, whose dimensions of length one repeat, with the step there from one element to the next.
 */
function forEachRow(
  shape: Shape,
  folded: Shape,
  visit: (first: number, length: number, at: number, step: number) => void,
): void {
  const size = sizeOf(shape);
  const length = shape.at(-1) ?? 1;
  const strides = broadcastStrides(folded, contiguousStrides(folded), shape);
  const step = strides.at(-1) ?? 0;
  const index = shape.map(() => 0);
  let at = 0;
  for (let first = 0; first < size; first += length) {
    visit(first, length, at, step);
    for (let d = shape.length - 2; d >= 0; d--) {
      at += strides[d]!;
      if (++index[d]! < shape[d]!) break;
      at -= strides[d]! * shape[d]!;
      index[d] = 0;
    }
  }
}
