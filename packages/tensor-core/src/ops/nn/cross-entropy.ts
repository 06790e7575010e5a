import { checkOptions } from '@roofline/cuda/host';
import { requireTensor } from '../../op/require-tensor.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { apply, applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { type DType, byteSize, computeDType } from '../../base/dtype.ts';
import { ShapeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import { checkWhole, formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { div, neg } from '../elementwise/arithmetic.ts';
import { notEqual } from '../elementwise/logical-not.ts';
import { where } from '../elementwise/where.ts';
import { gather } from '../index/gather.ts';
import { sum } from '../reduce/reductions.ts';
import { sumNode } from '../reduce/sum-graph.ts';
import { squeeze, unsqueeze } from '../shape/views.ts';
import { checkIndices } from '../support/check-indices.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireFloatingPoint, requireIndices } from '../support/require-dtype.ts';
import { planOfRows } from '../support/row-kernel.ts';
import { logSoftmax } from './log-softmax.ts';
import { logSoftmaxNode } from './softmax-graph.ts';

export interface CrossEntropyAttributes {
  readonly ignoreIndex: number;
}

const rowsKernel = kernelVariants(kernelSource('nn/cross_entropy.cu'), 'cross_entropy_rows', {
  ...{ logits: 'pointer', targets: 'pointer', logSumExp: 'pointer', losses: 'pointer' },
  ...{ rows: 'int64', columns: 'int32', ignored: 'int64' },
});
const meanKernel = kernelVariants(kernelSource('nn/cross_entropy.cu'), 'cross_entropy_mean', {
  ...{ losses: 'pointer', targets: 'pointer', loss: 'pointer', inverseCount: 'pointer' },
  ...{ rows: 'int64', ignored: 'int64' },
});
const backwardKernel = kernelVariants(kernelSource('nn/cross_entropy.cu'), 'cross_entropy_backward', {
  ...{ dloss: 'pointer', logits: 'pointer', targets: 'pointer', logSumExp: 'pointer' },
  ...{ inverseCount: 'pointer', dlogits: 'pointer', rows: 'int64', columns: 'int32', ignored: 'int64' },
});
const meanThreads = 1024;

function checkOperands(logits: TensorSpec, targets: TensorSpec): void {
  requireFloatingPoint('crossEntropy', 'logits', logits);
  requireIndices('crossEntropy', 'targets', targets);
  if (logits.shape.length !== 2 || targets.shape.length !== 1 || targets.shape[0] !== logits.shape[0]) {
    throw new ShapeError(
      `crossEntropy: takes logits [N, V] and targets [N], got ${formatShape(logits.shape)} and ` +
        `${formatShape(targets.shape)}; reshape them.`,
    );
  }
  if (sizeOf(logits.shape) === 0) {
    throw new ShapeError(
      `crossEntropy: the mean over logits ${formatShape(logits.shape)} without elements has no value.`,
    );
  }
}

/** Refuses targets that are neither a class nor ignored, where values can be looked at; names `op`. */
export function checkTargets(op: string, targets: Tensor, classes: number, ignoreIndex: number): void {
  const within = `the ${classes} classes 0..${classes - 1} (and is not the ignored ${ignoreIndex})`;
  const range = {
    op,
    role: 'target',
    length: classes,
    within,
    ignored: ignoreIndex,
  } as const;
  checkIndices(targets, range, { onCpu: true });
}

export const crossEntropyOp = defineOp<CrossEntropyAttributes>({
  name: 'crossEntropy',
  // The op itself reads low precision as float32 and returns a float32 loss; a cast of the logits would only cost memory.
  autocast: 'none',
  infer: ([logits, targets]) => {
    checkOperands(logits!, targets!);
    const dtype = computeDType([logits!.dtype], []);
    return [
      { shape: [], dtype },
      { shape: targets!.shape, dtype },
      { shape: [], dtype },
    ];
  },
  saves: () => ({ inputs: [0, 1], outputs: [1, 2] }),
  gradient: ({ gradients, input, output, attributes }) => [
    applyOne(crossEntropyBackwardOp, [gradients[0]!, input(0), input(1), output(1), output(2)], attributes),
    null,
  ],
  reference: ([logits, targets], { ignoreIndex }) => {
    const wide = cast(logits!, computeDType([logits!.dtype], []));
    const counted = notEqual(targets!, ignoreIndex);
    const columns = unsqueeze(where(counted, targets!, 0), 1);
    const chosen = squeeze(gather(logSoftmax(wide), 1, columns), 1);
    return [div(sum(where(counted, neg(chosen), 0)), sum(cast(counted, wide.dtype)))];
  },
  cost: (inputs, outputs) => ({
    flops: 4 * sizeOf(inputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: { kind: 'custom', launch: launchForward },
  cpu: {
    kind: 'onnx',
    build: (graph, [logits, targets], { ignoreIndex }) => {
      const { counted, column } = targetColumns(graph, logits!, targets!, ignoreIndex);
      const [zero, shape] = [graph.scalar(logits!.dtype, 0), column.shape];
      const logProbabilities = logSoftmaxNode(graph, logits!);
      const pick = (from: OnnxValue) => graph.node('GatherElements', [from, column], { axis: 1 }, { shape });
      const chosen = pick(logProbabilities);
      const losses = graph.node(
        'Where',
        [counted, graph.node('Neg', [chosen]), zero],
        {},
        { ...logits!, shape },
      );
      const count = sumAll(graph, graph.cast(counted, logits!.dtype));
      const logSumExp = graph.reshape(graph.node('Sub', [pick(logits!), chosen]), targets!.shape);
      const loss = graph.node('Div', [sumAll(graph, losses), count]);
      return [loss, logSumExp, graph.node('Reciprocal', [count])];
    },
  },
});

/** dlogits = (softmax(logits) - onehot(targets)) · dloss · inverseCount; 0 in ignored rows. */
export const crossEntropyBackwardOp = defineOp<CrossEntropyAttributes>({
  name: 'crossEntropyBackward',
  autocast: 'none',
  infer: ([, logits]) => [{ shape: logits!.shape, dtype: logits!.dtype }],
  cost: (inputs, outputs) => ({
    flops: 4 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: { kind: 'custom', launch: launchBackward },
  cpu: {
    kind: 'onnx',
    build: (graph, [dloss, logits, targets, , inverseCount], { ignoreIndex }) => {
      const { counted, column } = targetColumns(graph, logits!, targets!, ignoreIndex);
      const scale = graph.cast(graph.node('Mul', [dloss!, inverseCount!]), logits!.dtype);
      const scales = graph.node(
        'Where',
        [counted, scale, graph.scalar(logits!.dtype, 0)],
        {},
        {
          shape: column.shape,
          dtype: logits!.dtype,
        },
      );
      const probabilities = graph.node('Softmax', [logits!], { axis: -1 });
      const minusOnes = graph.constant(
        logits!.dtype,
        column.shape,
        Array.from({ length: targets!.shape[0]! }, () => -1),
      );
      // Before the product, because there ONNX Runtime scatters in place.
      const difference = graph.node('ScatterElements', [probabilities, column, minusOnes], {
        axis: 1,
        reduction: 'add',
      });
      return [graph.node('Mul', [difference, scales])];
    },
  },
});

/**
 * Which rows count ([N, 1], bool), and each row's target ([N, 1], int64), 0 for rows that do not. Gather and scatter refuse
 * targets above the vocabulary; negative ones, which they would count from the end, are shifted below what they accept.
 */
export function targetColumns(graph: OnnxGraph, logits: OnnxValue, targets: OnnxValue, ignoreIndex: number) {
  const column = graph.reshape(graph.cast(targets, 'int64'), [targets.shape[0]!, 1]);
  const [zero, size] = [graph.scalar('int64', 0), graph.scalar('int64', logits.shape[1]!)];
  const bool = { dtype: 'bool' } as const;
  const ignored = graph.node('Equal', [column, graph.scalar('int64', ignoreIndex)], {}, bool);
  const like = { shape: column.shape, dtype: column.dtype };
  const negative = graph.node('Less', [column, zero], {}, bool);
  const refused = graph.node('Where', [negative, graph.node('Sub', [column, size]), column], {}, like);
  return {
    counted: graph.node('Not', [ignored]),
    column: graph.node('Where', [ignored, zero, refused], {}, like),
  };
}

export function sumAll(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  return sumNode(graph, x, [...x.shape.keys()], false);
}

/** The plan for rows of the logits, as if of `dtype`, and the definitions of the kernels that work on them. */
export function planRows(
  tensors: readonly MemoryView[],
  targets: MemoryView,
  dtype: DType = tensors[0]!.dtype,
) {
  const [rows, columns] = tensors[0]!.shape as [number, number];
  const plan = planOfRows(columns, tensors, undefined, dtype);
  const variant = { ...plan.defines, INDEX: storageType(targets.dtype) };
  return { rows, columns, variant, grid: [Math.ceil(rows / plan.rowsPerBlock), 1, 1] as const };
}

function launchForward(
  context: CudaContext,
  [logits, targets]: readonly MemoryView[],
  [loss, logSumExp, inverseCount]: readonly MemoryView[],
  { ignoreIndex }: CrossEntropyAttributes,
): void {
  const { rows, columns, variant, grid } = planRows([logits!], targets!);
  const losses = context.workspace(rows * byteSize(loss!.dtype));
  context.kernel(rowsKernel(variant)).launch(
    grid,
    variant.BLOCK_THREADS,
    0,
    rowsKernel.byName({
      logits: logits!.address,
      targets: targets!.address,
      logSumExp: logSumExp!.address,
      losses,
      rows,
      columns,
      ignored: ignoreIndex,
    }),
  );
  context.kernel(meanKernel(variant)).launch(
    [1, 1, 1],
    meanThreads,
    0,
    meanKernel.byName({
      losses,
      targets: targets!.address,
      loss: loss!.address,
      inverseCount: inverseCount!.address,
      rows,
      ignored: ignoreIndex,
    }),
  );
}

function launchBackward(
  context: CudaContext,
  inputs: readonly MemoryView[],
  [dlogits]: readonly MemoryView[],
  { ignoreIndex }: CrossEntropyAttributes,
): void {
  const [dloss, logits, targets, logSumExp, inverseCount] = inputs;
  const { rows, columns, variant, grid } = planRows([logits!, dlogits!], targets!);
  context.kernel(backwardKernel(variant)).launch(
    grid,
    variant.BLOCK_THREADS,
    0,
    backwardKernel.byName({
      dloss: dloss!.address,
      logits: logits!.address,
      targets: targets!.address,
      logSumExp: logSumExp!.address,
      inverseCount: inverseCount!.address,
      dlogits: dlogits!.address,
      rows,
      columns,
      ignored: ignoreIndex,
    }),
  );
}

/** Options of `crossEntropy`. */
export interface CrossEntropyOptions {
  /** Rows with this target do not count. Default -100. */
  ignoreIndex?: number;
}

/**
 * The mean over rows of log Σ e^logits - logits[target], a scalar in float32 (float64 for float64 logits). logits: [N, V];
 * targets: [N], int32 or int64, each in 0..V-1 or `ignoreIndex`, whose rows do not count; NaN if no row counts. A target out
 * of range is a ShapeError on the CPU and, with ROOFLINE_CHECK_INDICES=1, on CUDA, where it otherwise makes the loss NaN.
 * Throws a ShapeError or DTypeError.
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: CrossEntropyOptions = {}): Tensor {
  requireTensor('crossEntropy', logits);
  requireTensor('crossEntropy', targets);
  checkOptions('crossEntropy', options, ['ignoreIndex']);
  const { ignoreIndex = -100 } = options;
  checkWhole('crossEntropy', 'ignoreIndex', ignoreIndex);
  checkOperands(logits, targets);
  checkTargets('crossEntropy', targets, logits.shape[1]!, ignoreIndex);
  const [loss, logSumExp, inverseCount] = apply(crossEntropyOp, [logits, targets], { ignoreIndex });
  logSumExp!.dispose();
  inverseCount!.dispose();
  return loss!;
}
