import type { TensorSpec } from '../../base/memory-view.ts';
import { applyOne } from '../../op/apply.ts';
import { byteSize, checkFilling, computeDType, isFloatingPoint, isHigherCategory } from '../../base/dtype.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { toBits16 } from '../../base/float16.ts';
import { defineOp } from '../../op/op.ts';
import { formatShape, sameShape } from '../../base/shape.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { cast } from './cast.ts';

function sameAsFirst(op: string, [target, source]: readonly TensorSpec[]): readonly TensorSpec[] {
  if (!sameShape(target!.shape, source!.shape)) {
    throw new ShapeError(
      `${op}: ${formatShape(source!.shape)} cannot be written into ${formatShape(target!.shape)}.`,
    );
  }
  return [target!];
}

export const addInPlaceOp = defineOp({
  name: 'add_',
  autocast: 'none',
  infer: (inputs) => {
    const [target, source] = inputs;
    if (isHigherCategory(source!.dtype, target!.dtype)) {
      throw new DTypeError(
        `add_: ${source!.dtype} cannot be added in place to ${target!.dtype}, which would not hold the sums; ` +
          'cast() it, or use add().',
      );
    }
    return sameAsFirst('add_', inputs);
  },
  mutates: [0],
  gradient: ({ gradients: [g] }) => [g!, g!],
  cuda: { kind: 'pointwise', expressions: () => ['a + b'] },
  cpu: {
    kind: 'onnx',
    overwrites: true,
    build: (graph, [a, b]) => {
      const dtype = computeDType([a!.dtype, b!.dtype], []);
      return [graph.node(dtype === 'bool' ? 'Or' : 'Add', [graph.cast(a!, dtype), graph.cast(b!, dtype)])];
    },
  },
});

/**
 * Adds `source` to `target` in place; both have one shape. For bools it is "or". Recorded on the tape if the source requires a
 * gradient. Throws a ShapeError; a DTypeError if the target's dtype is of a lower category than the source's, such as integers
 * and floats; and an AutogradError where PyTorch would, or where views of the target would miss the gradient.
 */
export function addInPlace(target: Tensor, source: Tensor, ...rest: []): void {
  requireTensor('addInPlace', target);
  requireTensor('addInPlace', source);
  refuseMore('addInPlace', rest);
  const isInteger = !isFloatingPoint(source.dtype) && source.dtype !== 'bool';
  if (byteSize(target.dtype) !== 2 || !isInteger) {
    applyOne(addInPlaceOp, [target, source], undefined).dispose();
    return;
  }
  // Low precision rounds integers before they are added, as in `add`.
  const rounded = cast(source, target.dtype);
  try {
    applyOne(addInPlaceOp, [target, rounded], undefined).dispose();
  } finally {
    rounded.dispose();
  }
}

export const copyInPlaceOp = defineOp({
  name: 'copy_',
  autocast: 'none',
  infer: (inputs) => sameAsFirst('copy_', inputs),
  mutates: [0],
  gradient: ({ gradients: [g], needs }) => [needs[0] ? zerosOf(g!) : null, g!],
  cuda: { kind: 'pointwise', expressions: () => ['b'] },
  cpu: {
    kind: 'onnx',
    overwrites: true,
    build: (graph, [a, b]) => [graph.node('Identity', [graph.cast(b!, computeDType([a!.dtype], []))])],
  },
});

/**
 * Overwrites `target` with the values of `source`, cast to its dtype; both have one shape. Recorded and refused like
 * `addInPlace`.
 */
export function copyInPlace(target: Tensor, source: Tensor, ...rest: []): void {
  requireTensor('copyInPlace', target);
  requireTensor('copyInPlace', source);
  refuseMore('copyInPlace', rest);
  applyOne(copyInPlaceOp, [target, source], undefined).dispose();
}

export interface FillAttributes {
  readonly value: number;
}

export const fillOp = defineOp<FillAttributes>({
  name: 'fill_',
  autocast: 'none',
  infer: ([x]) => [x!],
  mutates: [0],
  scalars: ({ value }) => [value],
  variant: () => '',
  cuda: { kind: 'pointwise', expressions: () => ['s0'] },
  cpu: {
    kind: 'host',
    run: (_, [output], { value }) => {
      const { data, dtype } = output!;
      if (data instanceof BigInt64Array) data.fill(BigInt(value));
      else if (data instanceof Uint16Array) data.fill(toBits16(dtype, value));
      else data.fill(dtype === 'bool' ? Number(value !== 0) : value);
    },
  },
});

/**
 * Sets every element of `x` to `value`. Throws a DTypeError for a value that its dtype cannot hold, and outside noGrad an
 * AutogradError for an `x` that requires a gradient.
 */
export function fillInPlace(x: Tensor, value: number, ...rest: []): void {
  requireTensor('fillInPlace', x);
  refuseMore('fillInPlace', rest);
  checkFilling('fillInPlace', x.dtype, value);
  applyOne(fillOp, [x], { value }).dispose();
}

/** Zeros like `x`. The creation functions fill by this module, so they cannot be imported here. */
function zerosOf({ device, dtype, shape }: Tensor): Tensor {
  const zeros = Tensor.allocate(device, dtype, shape);
  if (zeros.size > 0) fillInPlace(zeros, 0);
  return zeros;
}
