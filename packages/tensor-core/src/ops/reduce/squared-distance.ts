import type { HostArray } from '../../op/cpu-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { defineOp } from '../../op/op.ts';
import { type Shape, broadcastStrides, contiguousStrides, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { reshape } from '../shape/views.ts';
import { numbersOf, storeNumbers } from '../support/host-numbers.ts';
import { type ReductionAttributes, reducedShape } from './reductions.ts';

type Floats = Float32Array | Float64Array;

// On the CPU in JavaScript: ONNX Runtime would first copy x to float64, and then take a pass for each node. Only results are
// written in float64, so memory traffic is two reads of x.

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

/** The mean over `dims`, which are ascending and are kept with length one, in float64. */
export function float64Mean(x: Tensor, dims: readonly number[]): Tensor {
  return applyOne(float64MeanOp, [x], { dims, keepDims: true });
}

/** Sums are made over blocks of so many elements first, so that few roundings follow one another. */
const block = 1024;

/** Sums distances from the first element, so that equal elements have an exact mean. */
function meanOnHost(x: HostArray, mean: HostArray, { dims }: ReductionAttributes): void {
  const values = numbersOf(x) as Floats;
  const sums = mean.data as Float64Array;
  sums.fill(0);
  const origins = new Float64Array(sums.length);
  const isKnown = new Uint8Array(sums.length);
  forEachFold(x.shape, dims, (first, length, inner, at) => {
    if (isKnown[at] === 0) {
      isKnown[at] = 1;
      for (let i = 0; i < inner; i++) origins[at + i] = values[first + i]!;
    }
    if (inner === 1) sums[at]! += sumOfDistances(values, first, first + length, origins[at]!);
    else addDistances(sums, at, values, { first, length, inner }, origins);
  });
  const count = sums.length === 0 ? 1 : values.length / sums.length;
  for (let i = 0; i < sums.length; i++) sums[i] = origins[i]! + sums[i]! / count;
}

/** Σ (x - center), in four independent sums, which do not wait for one another in the processor. */
function sumOfDistances(values: Floats, begin: number, end: number, center: number): number {
  let total = 0;
  for (let from = begin; from < end; from += block) {
    const to = Math.min(from + block, end);
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let i = from;
    for (; i + 3 < to; i += 4) {
      a += values[i]! - center;
      b += values[i + 1]! - center;
      c += values[i + 2]! - center;
      d += values[i + 3]! - center;
    }
    for (; i < to; i++) a += values[i]! - center;
    total += a + b + (c + d);
  }
  return total;
}

/** Σ (x - center)², like `sumOfDistances`. */
function sumOfSquares(values: Floats, begin: number, end: number, center: number): number {
  let total = 0;
  for (let from = begin; from < end; from += block) {
    const to = Math.min(from + block, end);
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let i = from;
    for (; i + 3 < to; i += 4) {
      const p = values[i]! - center;
      const q = values[i + 1]! - center;
      const r = values[i + 2]! - center;
      const s = values[i + 3]! - center;
      a += p * p;
      b += q * q;
      c += r * r;
      d += s * s;
    }
    for (; i < to; i++) {
      const p = values[i]! - center;
      a += p * p;
    }
    total += a + b + (c + d);
  }
  return total;
}

/** Rows of `inner` elements each, one after the other from `first`. */
interface Rows {
  readonly first: number;
  readonly length: number;
  readonly inner: number;
}

/** Adds each column's Σ (x - center) to its element of `sums`, from `at`; four rows at a time, to write sums less often. */
function addDistances(
  sums: Float64Array,
  at: number,
  values: Floats,
  { first, length, inner }: Rows,
  centers: Floats,
): void {
  let row = 0;
  for (; row + 3 < length; row += 4) {
    let i = first + row * inner;
    for (let column = at; column < at + inner; column++, i++) {
      const center = centers[column]!;
      const p = values[i]! - center;
      const q = values[i + inner]! - center;
      const r = values[i + 2 * inner]! - center;
      const s = values[i + 3 * inner]! - center;
      sums[column]! += p + q + (r + s);
    }
  }
  for (; row < length; row++) {
    const i = first + row * inner - at;
    for (let column = at; column < at + inner; column++)
      sums[column]! += values[i + column]! - centers[column]!;
  }
}

/** Adds each column's Σ (x - center)², like `addDistances`. */
function addSquares(
  sums: Float64Array,
  at: number,
  values: Floats,
  { first, length, inner }: Rows,
  centers: Floats,
): void {
  let row = 0;
  for (; row + 3 < length; row += 4) {
    let i = first + row * inner;
    for (let column = at; column < at + inner; column++, i++) {
      const center = centers[column]!;
      const p = values[i]! - center;
      const q = values[i + inner]! - center;
      const r = values[i + 2 * inner]! - center;
      const s = values[i + 3 * inner]! - center;
      sums[column]! += p * p + q * q + (r * r + s * s);
    }
  }
  for (; row < length; row++) {
    const i = first + row * inner - at;
    for (let column = at; column < at + inner; column++) {
      const p = values[i + column]! - centers[column]!;
      sums[column]! += p * p;
    }
  }
}

const squaredDistanceOp = defineOp<ReductionAttributes>({
  name: 'squaredDistance',
  autocast: 'none',
  infer: ([x], attributes) => [{ shape: reducedShape(x!.shape, attributes), dtype: 'float64' }],
  saves: () => ({ inputs: [0, 1] }),
  gradient: ({ gradients: [g], input, attributes }) => {
    const mean = input(1);
    return [applyOne(squaredDistanceBackwardOp, [input(0), mean, reshape(g!, mean.shape)], attributes), null];
  },
  cost: (inputs, outputs) => ({
    flops: 3 * sizeOf(inputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'reduction',
    identity: 'zero',
    term: '(x - center) * (x - center)',
    combine: 'x + y',
    finish: 'x',
  },
  cpu: {
    kind: 'host',
    run([x, mean], [y], { dims }) {
      const [values, means] = [numbersOf(x!) as Floats, mean!.data as Floats];
      const sums = y!.data as Float64Array;
      sums.fill(0);
      forEachFold(x!.shape, dims, (first, length, inner, at) => {
        if (inner === 1) sums[at]! += sumOfSquares(values, first, first + length, means[at]!);
        else addSquares(sums, at, values, { first, length, inner }, means);
      });
    },
  },
});

/**
 * Σ (x - mean)² in float64, of an `x` of any floating-point dtype and the `float64Mean` over the same dimensions, which
 * needs no gradient.
 */
export function squaredDistance(x: Tensor, mean: Tensor, attributes: ReductionAttributes): Tensor {
  return applyOne(squaredDistanceOp, [x, mean], attributes);
}

/** 2 · (x - mean) · g, rounded once to x's dtype. */
const squaredDistanceBackwardOp = defineOp<Pick<ReductionAttributes, 'dims'>>({
  name: 'squaredDistanceBackward',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  cuda: { kind: 'pointwise', expressions: () => ['2 * (a - b) * c'] },
  cpu: {
    kind: 'host',
    run([x, mean, g], [dx], { dims }) {
      const [values, means] = [numbersOf(x!) as Floats, mean!.data as Floats];
      const gradients = g!.data as Floats;
      const results =
        dx!.data instanceof Uint16Array ? new Float32Array(values.length) : (dx!.data as Floats);
      forEachFold(x!.shape, dims, (first, length, inner, at) => {
        if (inner === 1) {
          const center = means[at]!;
          const slope = gradients[at]!;
          for (let i = first; i < first + length; i++) results[i] = 2 * (values[i]! - center) * slope;
          return;
        }
        for (let i = first; i < first + length * inner; i += inner)
          for (let j = 0; j < inner; j++)
            results[i + j] = 2 * (values[i + j]! - means[at + j]!) * gradients[at + j]!;
      });
      if (results !== dx!.data) storeNumbers(dx!, results);
    },
  },
});

/**
 * Calls `visit` for each piece of a tensor that is folded into neighbouring results: `length` rows of `inner` elements, one
 * after the other from `first`, into the results from `at`. With `inner` 1 it is one row, into one result.
 */
function forEachFold(
  shape: Shape,
  dims: readonly number[],
  visit: (first: number, length: number, inner: number, at: number) => void,
): void {
  const size = sizeOf(shape);
  const isFolded = (d: number) => dims.includes(d) || shape[d] === 1;
  let d = shape.length;
  let inner = 1;
  while (d > 0 && !dims.includes(d - 1)) inner *= shape[--d]!;
  let length = 1;
  while (d > 0 && isFolded(d - 1)) length *= shape[--d]!;
  // The remaining outer dimensions, from the last to the first.
  const outer = shape.slice(0, d);
  const kept = outer.map((each, i) => (dims.includes(i) ? 1 : each));
  const strides = broadcastStrides(kept, contiguousStrides(kept), outer);
  const index = outer.map(() => 0);
  let at = 0;
  for (let first = 0; first < size; first += length * inner) {
    visit(first, length, inner, at * inner);
    for (let i = outer.length - 1; i >= 0; i--) {
      at += strides[i]!;
      if (++index[i]! < outer[i]!) break;
      at -= strides[i]! * outer[i]!;
      index[i] = 0;
    }
  }
}
