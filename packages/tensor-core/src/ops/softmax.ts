import { applyOne } from '../apply.ts';
import { withoutAutocast } from '../autocast/autocast.ts';
import { bytesOf } from '../cost.ts';
import type { DType } from '../dtype.ts';
import { defineOp } from '../op.ts';
import { sizeOf } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { alongLastDimension } from './along-last-dimension.ts';
import { cast } from './cast.ts';
import { kernelVariants } from './kernel-variants.ts';
import { requireFloatingPoint } from './require-dtype.ts';
import { launchRows } from './row-kernel.ts';

const forwardKernel = kernelVariants('softmax.cu', 'softmax', 'ppli');
const backwardKernel = kernelVariants('softmax.cu', 'softmax_backward', 'pppli');

const softmaxOp = defineOp({
  name: 'softmax',
  autocast: 'float32',
  infer: ([x]) => {
    requireFloatingPoint('softmax', 'x', x!);
    return [{ shape: x!.shape, dtype: x!.dtype }];
  },
  saves: () => ({ outputs: [0] }),
  gradient: ({ gradients, output }) => [applyOne(softmaxBackwardOp, [gradients[0]!, output(0)], undefined)],
  cost: (inputs, outputs) => ({
    flops: 5 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    launch: (context, [x], [y]) => launchRows(context, forwardKernel, [x!, y!]),
  },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Softmax', [x!], { axis: -1 })] },
});

/** dx = y · (dy - Σ dy·y) along the last dimension, from dy and y. */
const softmaxBackwardOp = defineOp({
  name: 'softmaxBackward',
  autocast: 'float32',
  infer: ([, y]) => [{ shape: y!.shape, dtype: y!.dtype }],
  cost: (inputs, outputs) => ({
    flops: 4 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    launch: (context, [dy, y], [dx]) => launchRows(context, backwardKernel, [dy!, y!, dx!]),
  },
  cpu: {
    kind: 'onnx',
    build: (graph, [dy, y]) => {
      const product = graph.node('Mul', [dy!, y!]);
      const sum = graph.node(
        'ReduceSum',
        [product, graph.integers([-1])],
        { keepdims: 1 },
        {
          shape: [...y!.shape.slice(0, -1), 1],
        },
      );
      return [graph.node('Sub', [product, graph.node('Mul', [y!, sum])])];
    },
  },
});

export interface SoftmaxOptions {
  /** Of the result. Default x's, or float32 under autocast; given, autocast leaves the op alone. */
  dtype?: DType;
}

/**
 * e^x / Σ e^x along one dimension, the last by default; low precision is calculated in float32 and rounded at
 * the end. Throws a ShapeError or DTypeError.
 */
export function softmax(x: Tensor, dimension = -1, { dtype }: SoftmaxOptions = {}): Tensor {
  const run = () =>
    alongLastDimension('softmax', x, dimension, (rows) => applyOne(softmaxOp, [rows], undefined));
  return dtype === undefined ? run() : cast(withoutAutocast(run), dtype);
}
