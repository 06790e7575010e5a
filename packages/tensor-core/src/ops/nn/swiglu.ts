import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { PointwiseValue } from '../../op/cuda-lowering.ts';
import { apply, applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { promote } from '../../base/dtype.ts';
import { ShapeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { formatShape, sameShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { contiguous } from '../copy/contiguous.ts';
import { mul } from '../elementwise/arithmetic.ts';
import { silu } from '../elementwise/math.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { onePlusExpMinus, onePlusXTimesSigmoidMinus } from '../support/sigmoid-graph.ts';

function checkOperands(a: TensorSpec, b: TensorSpec): void {
  requireFloatingPoint('swiglu', 'a', a);
  requireFloatingPoint('swiglu', 'b', b);
  if (!sameShape(a.shape, b.shape)) {
    throw new ShapeError(
      `swiglu: a ${formatShape(a.shape)} and b ${formatShape(b.shape)} must be of one shape.`,
    );
  }
}

/**
 * `sigmoid` without cancellation or overflow, of which `larger` and `smaller` also make that of -x, from one exponential and one
 * division: with more of them, calculating takes longer than the memory. The same text in both directions, so that one kernel of both
 * calculates it once.
 */
function sigmoidOf(x: string): PointwiseValue[] {
  return [
    { name: 'decay', dtype: null, text: `exp(${x} < 0 ? ${x} : -${x})` },
    { name: 'larger', dtype: null, text: '1 / (1 + decay)' },
    { name: 'smaller', dtype: null, text: 'larger * decay' },
    { name: 'sigmoid', dtype: null, text: `${x} < 0 ? smaller : larger` },
  ];
}

const swigluOp = defineOp({
  name: 'swiglu',
  autocast: 'promote',
  infer: ([a, b]) => {
    checkOperands(a!, b!);
    return [{ shape: a!.shape, dtype: a!.dtype }];
  },
  saves: () => ({ inputs: [0, 1] }),
  gradient: ({ gradients, input }) =>
    apply(swigluBackwardOp, [contiguous(gradients[0]!), input(0), input(1)], undefined),
  reference: ([a, b]) => [mul(silu(a!), b!)],
  cost: (inputs, outputs) => ({
    flops: 6 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'pointwise',
    values: () => sigmoidOf('a'),
    expressions: () => ['a * sigmoid * b'],
  },
  cpu: {
    kind: 'onnx',
    chunked: true,
    build: (graph, [a, b]) => [graph.node('Mul', [graph.node('Div', [a!, onePlusExpMinus(graph, a!)]), b!])],
  },
});

/** da = dy·b·σ(a)·(1 + a·σ(-a)) and db = dy·a·σ(a), from dy, a and b. σ(-a) is 1 - σ(a) without its cancellation. */
const swigluBackwardOp = defineOp({
  name: 'swigluBackward',
  autocast: 'promote',
  infer: ([, a, b]) => [
    { shape: a!.shape, dtype: a!.dtype },
    { shape: b!.shape, dtype: b!.dtype },
  ],
  cost: (inputs, outputs) => ({
    flops: 12 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'pointwise',
    values: () => [...sigmoidOf('b'), { name: 'opposite', dtype: null, text: 'b < 0 ? larger : smaller' }],
    expressions: () => ['a * c * sigmoid * (1 + b * opposite)', 'a * b * sigmoid'],
  },
  cpu: {
    kind: 'onnx',
    chunked: true,
    build: (graph, [dy, a, b]) => {
      const scaled = graph.node('Div', [dy!, onePlusExpMinus(graph, a!)]);
      const slope = onePlusXTimesSigmoidMinus(graph, a!);
      const da = graph.node('Mul', [graph.node('Mul', [scaled, b!]), slope]);
      return [da, graph.node('Mul', [scaled, a!])];
    },
  },
});

/**
 * silu(a) · b, element by element: the gate of SwiGLU (Shazeer 2020), in the promoted dtype. Only a and b are kept for the
 * backward pass. Throws a ShapeError or DTypeError.
 */
export function swiglu(a: Tensor, b: Tensor, ...rest: []): Tensor {
  requireTensor('swiglu', a);
  requireTensor('swiglu', b);
  refuseMore('swiglu', rest);
  const dtype = promote(a.dtype, b.dtype);
  // In one layout, because on the CPU both are processed piece by piece.
  return scope(() =>
    applyOne(
      swigluOp,
      [a, b].map((x) => contiguous(cast(x, dtype))),
      undefined,
    ),
  );
}
