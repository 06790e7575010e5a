import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { withoutAutocast } from '../../op/autocast/autocast.ts';
import { alias } from '../../op/alias.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { type DType, checkDType, computeDType } from '../../base/dtype.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { ShapeError } from '../../base/errors.ts';
import { type Shape, formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { sub } from '../elementwise/arithmetic.ts';
import { max } from '../reduce/reductions.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { causalMask, keptFraction, lowerTriangle, masked } from '../shape/tril.ts';
import { sumNode } from '../reduce/sum-graph.ts';
import { alongLastDimension } from '../support/along-last-dimension.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { launchRows } from '../support/row-kernel.ts';

export interface SoftmaxDefinition {
  readonly name: 'softmax' | 'causalSoftmax' | 'logSoftmax';
  /** Whether its rows are those of matrices [..., T, S], of which row i sees the columns j <= i + S - T alone. */
  readonly isCausal?: boolean;
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

/** Options of `softmax`; `logSoftmax` takes the dtype. */
export interface SoftmaxOptions {
  /** The result's dtype. Default x's, or float32 under autocast; if given, autocast leaves the op alone. */
  dtype?: DType;
  /**
   * The same as softmax of `causalMask(x)`, in one kernel that reads only what is not masked. x is [..., T, S], and the dimension
   * its last. Default false.
   */
  causal?: boolean;
}

/** Runs an op that works along the last dimension along another one. */
export function applySoftmax(
  op: ComputeOp<undefined>,
  x: Tensor,
  dimension: number,
  { dtype }: Pick<SoftmaxOptions, 'dtype'>,
): Tensor {
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
  isCausal = false,
}: SoftmaxDefinition): ComputeOp<undefined> {
  const forwardKernel = kernelVariants(kernelSource('nn/softmax.cu'), kernel, {
    ...{ x: 'pointer', y: 'pointer', rows: 'int64', columns: 'int32' },
    ...queriesOf(isCausal),
  });
  const matricesOf = queriesIn(isCausal);
  const backwardOp = softmaxBackwardOp({ name, kernel, backward, isCausal });
  return defineOp({
    name,
    autocast: 'float32',
    infer: ([x]) => {
      requireFloatingPoint(name, 'x', x!);
      if (isCausal && x!.shape.length < 2)
        throw new ShapeError(`${name}: takes matrices [..., T, S], not ${formatShape(x!.shape)}.`);
      return [{ shape: x!.shape, dtype: x!.dtype }];
    },
    saves: () => ({ outputs: [0] }),
    gradient: ({ gradients, output }) => [applyOne(backwardOp, [gradients[0]!, output(0)], undefined)],
    reference: ([x]) => [ofShifted(isCausal ? causalMask(x!) : x!, reference)],
    cost: costOf(5, isCausal),
    cuda: {
      kind: 'custom',
      launch: (context, [x], [y]) => launchRows(context, forwardKernel, { x: x!, y: y! }, matricesOf(x!)),
    },
    cpu: {
      kind: 'onnx',
      build: (graph, [x]) => [onnx(graph, isCausal ? masked(graph, x!, diagonalOf(x!.shape)) : x!)],
    },
  });
}

function ofShifted(x: Tensor, fn: SoftmaxDefinition['reference']): Tensor {
  if (x.size === 0) return alias(x);
  const wide = cast(x, computeDType([x.dtype], []));
  // The result does not depend on what is subtracted, so neither does the gradient.
  const largest = max(wide.detach(), { dims: -1, keepDims: true });
  return cast(fn(sub(wide, largest)), x.dtype);
}

function softmaxBackwardOp({
  name,
  kernel,
  backward,
  isCausal,
}: Pick<SoftmaxDefinition, 'name' | 'kernel' | 'backward'> & {
  readonly isCausal: boolean;
}): ComputeOp<undefined> {
  const backwardKernel = kernelVariants(kernelSource('nn/softmax.cu'), `${kernel}_backward`, {
    ...{ dy: 'pointer', y: 'pointer', dx: 'pointer', rows: 'int64', columns: 'int32' },
    ...queriesOf(isCausal),
  });
  const matricesOf = queriesIn(isCausal);
  return defineOp({
    name: `${name}Backward`,
    autocast: 'float32',
    infer: ([, y]) => [{ shape: y!.shape, dtype: y!.dtype }],
    cost: costOf(4, isCausal),
    cuda: {
      kind: 'custom',
      launch: (context, [dy, y], [dx]) => {
        launchRows(context, backwardKernel, { dy: dy!, y: y!, dx: dx! }, matricesOf(y!));
      },
    },
    cpu: {
      kind: 'onnx',
      build: (graph, [dy, y]) => {
        const sum = (value: OnnxValue) => sumNode(graph, value, [value.shape.length - 1], true);
        if (!isCausal) return [backward(graph, dy!, y!, sum)];
        // What is masked is neither read nor more than zero, whatever stands there or in the rest of its row.
        const seen = (value: OnnxValue) => lowerTriangle(graph, value, diagonalOf(y!.shape));
        return [seen(backward(graph, seen(dy!), y!, sum))];
      },
    },
  });
}

/** The parameter that kernels of causal rows have besides. */
function queriesOf(isCausal: boolean): Readonly<Record<string, 'int32'>> {
  return isCausal ? { queries: 'int32' } : {};
}

/** Its value. */
function queriesIn(isCausal: boolean): (x: MemoryView) => Readonly<Record<string, number>> {
  return isCausal ? ({ shape }) => ({ queries: shape.at(-2)! }) : () => ({});
}

/** That of the mask: the last row sees every column. */
function diagonalOf(shape: Shape): number {
  return shape.at(-1)! - shape.at(-2)!;
}

/** What a row does not see is not read, and takes no arithmetic. */
function costOf(flopsOfEach: number, isCausal: boolean): NonNullable<ComputeOp<undefined>['cost']> {
  return (inputs, outputs) => {
    const { shape } = outputs[0]!;
    const seen = isCausal ? keptFraction(shape, diagonalOf(shape)) : 1;
    return {
      flops: flopsOfEach * seen * sizeOf(shape),
      bytesMoved: seen * bytesOf(inputs) + bytesOf(outputs),
    };
  };
}
