import { checkOptions } from '@roofline/cuda/host';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { withoutAutocast } from '../../op/autocast/autocast.ts';
import { alias } from '../../op/alias.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { type DType, checkDType, computeDType } from '../../base/dtype.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { sub } from '../elementwise/arithmetic.ts';
import { max } from '../reduce/reductions.ts';
import { sumNode } from '../reduce/sum-graph.ts';
import { alongLastDimension } from '../support/along-last-dimension.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { launchRows } from '../support/row-kernel.ts';

interface SoftmaxDefinition {
  readonly name: 'softmax' | 'logSoftmax';
  /** The kernel's name in kernels/nn/softmax.cu; the backward kernel's has `_backward` appended. */
  readonly kernel: string;
  readonly onnx: (graph: OnnxGraph, x: OnnxValue) => OnnxValue;
  /** From x - max(x), in rows of at least one element. */
  readonly reference: (shifted: Tensor) => Tensor;
  /** dx from dy and y; `sum` folds the last dimension and keeps it. */
  readonly backward: (
    graph: OnnxGraph,
    dy: OnnxValue,
    y: OnnxValue,
    sum: (value: OnnxValue) => OnnxValue,
  ) => OnnxValue;
}

/** Options of `softmax` and `logSoftmax`. */
export interface SoftmaxOptions {
  /** The result's dtype. Default x's, or float32 under autocast; if given, autocast leaves the op alone. */
  dtype?: DType;
}

/** Runs an op that works along the last dimension along another one. */
export function applySoftmax(
  op: ComputeOp<undefined>,
  x: Tensor,
  dimension: number,
  options: SoftmaxOptions,
): Tensor {
  checkOptions(op.name, options, ['dtype']);
  const { dtype } = options;
  const run = () => alongLastDimension(op.name, x, dimension, (rows) => applyOne(op, [rows], undefined));
  if (dtype === undefined) return run();
  checkDType(op.name, dtype);
  return scope(() => cast(withoutAutocast(run), dtype));
}

/** An op along the last dimension whose gradient needs only its output. */
export function softmaxOp({
  name,
  kernel,
  onnx,
  backward,
  reference,
}: SoftmaxDefinition): ComputeOp<undefined> {
  const forwardKernel = kernelVariants(kernelSource('nn/softmax.cu'), kernel, {
    ...{ x: 'pointer', y: 'pointer', rows: 'int64', columns: 'int32' },
  });
  const backwardOp = softmaxBackwardOp(name, kernel, backward);
  return defineOp({
    name,
    autocast: 'float32',
    infer: ([x]) => {
      requireFloatingPoint(name, 'x', x!);
      return [{ shape: x!.shape, dtype: x!.dtype }];
    },
    saves: () => ({ outputs: [0] }),
    gradient: ({ gradients, output }) => [applyOne(backwardOp, [gradients[0]!, output(0)], undefined)],
    reference: ([x]) => [ofShifted(x!, reference)],
    cost: (inputs, outputs) => ({
      flops: 5 * sizeOf(outputs[0]!.shape),
      bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    }),
    cuda: {
      kind: 'custom',
      launch: (context, [x], [y]) => launchRows(context, forwardKernel, { x: x!, y: y! }),
    },
    cpu: { kind: 'onnx', build: (graph, [x]) => [onnx(graph, x!)] },
  });
}

function ofShifted(x: Tensor, fn: SoftmaxDefinition['reference']): Tensor {
  if (x.size === 0) return alias(x);
  const wide = cast(x, computeDType([x.dtype], []));
  // The result does not depend on what is subtracted, so neither does the gradient.
  const largest = max(wide.detach(), { dims: -1, keepDims: true });
  return cast(fn(sub(wide, largest)), x.dtype);
}

function softmaxBackwardOp(
  name: string,
  kernel: string,
  backward: SoftmaxDefinition['backward'],
): ComputeOp<undefined> {
  const backwardKernel = kernelVariants(kernelSource('nn/softmax.cu'), `${kernel}_backward`, {
    ...{ dy: 'pointer', y: 'pointer', dx: 'pointer', rows: 'int64', columns: 'int32' },
  });
  return defineOp({
    name: `${name}Backward`,
    autocast: 'float32',
    infer: ([, y]) => [{ shape: y!.shape, dtype: y!.dtype }],
    cost: (inputs, outputs) => ({
      flops: 4 * sizeOf(outputs[0]!.shape),
      bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    }),
    cuda: {
      kind: 'custom',
      launch: (context, [dy, y], [dx]) => launchRows(context, backwardKernel, { dy: dy!, y: y!, dx: dx! }),
    },
    cpu: {
      kind: 'onnx',
      build: (graph, [dy, y]) => {
        const sum = (value: OnnxValue) => sumNode(graph, value, [value.shape.length - 1], true);
        return [backward(graph, dy!, y!, sum)];
      },
    },
  });
}
