import { checkNumber } from '@roofline/cuda/host';
import type { MemoryView } from '../../base/memory-view.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { DeferredOutputs, FusionPlaces, KernelFusion } from '../../op/kernel-rewrites.ts';
import { type CudaProperties, kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { computeDType } from '../../base/dtype.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { formatShape } from '../../base/shape.ts';
import { denseWorkspace } from '../support/dense-memory.ts';
import { noFusion } from '../support/no-fusion.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { foldRows } from './norm-fold.ts';
import { type RowPlan, planOfRows } from '../support/row-kernel.ts';

const forwardKernel = kernelVariants(kernelSource('nn/norm.cu'), 'norm_forward', {
  ...{ x: 'pointer', weight: 'pointer', bias: 'pointer', y: 'pointer', mean: 'pointer', rstd: 'pointer' },
  ...{ rows: 'int64', columns: 'int32', eps: 'float64', fusion: 'struct' },
});
const backwardKernel = kernelVariants(kernelSource('nn/norm_backward.cu'), 'norm_backward', {
  ...{ dy: 'pointer', x: 'pointer', weight: 'pointer', mean: 'pointer', rstd: 'pointer', dx: 'pointer' },
  ...{ partialWeight: 'pointer', partialBias: 'pointer', rows: 'int64', columns: 'int32', fusion: 'struct' },
});

// The backward kernel holds two rows, the next two, and column sums in registers. With 16 elements a thread fewer warps wait for each
// other at the end of a row: on an H200 rows of 4096 then move 4.1 TB/s in place of 3.5. Shorter ones have too few threads that way.
const backwardBudget = { preferredElements: 8, mostElements: 16 };
const longRowBudget = { preferredElements: 16, mostElements: 16 };
const longRow = 4096;
const backwardBlocksPerMultiprocessor = 2;
/** Rows up to this length fit into registers, forward and backward. */
const longestRow = 8192;
/** Forward, x has a prologue and y an epilogue; backward, dy and dx. */
export const normFusion: FusionPlaces = { input: 0, output: 0, longestRow };

/** Throws a ShapeError or DTypeError unless `parameters` are vectors that fit the last dimension of `x`. */
export function checkNorm(op: string, x: TensorSpec, parameters: Readonly<Record<string, TensorSpec>>): void {
  requireFloatingPoint(op, 'x', x);
  for (const [name, parameter] of Object.entries(parameters)) {
    requireFloatingPoint(op, name, parameter);
    if (x.shape.length === 0 || parameter.shape.length !== 1 || parameter.shape[0] !== x.shape.at(-1)) {
      throw new ShapeError(
        `${op}: ${name} ${formatShape(parameter.shape)} must be a vector as long as the last dimension of ` +
          `x ${formatShape(x.shape)}.`,
      );
    }
  }
  const dtypes = Object.values(parameters).map(({ dtype }) => dtype);
  if (dtypes.some((dtype) => dtype !== dtypes[0])) {
    throw new DTypeError(`${op}: weight and bias must be of one dtype, not ${dtypes.join(' and ')}.`);
  }
}

/** Throws a RooflineError (code RANGE) unless `eps`, which is added to a variance, is zero or more. */
export function checkEps(op: string, eps: number): void {
  checkNumber(op, 'eps', eps, 'a finite number of zero or more', (value) => value >= 0 && value < Infinity);
}

/** The tensors of kernels/nn/norm.cu and norm_backward.cu; those that only layerNorm has are absent for rmsNorm. */
export interface NormForward {
  readonly x: MemoryView;
  readonly weight: MemoryView;
  readonly bias?: MemoryView;
  readonly y: MemoryView;
  readonly mean?: MemoryView;
  readonly rstd: MemoryView;
}

export function launchNorm(context: CudaContext, tensors: NormForward, eps: number, fusion = noFusion): void {
  const { x, weight, bias, y, mean, rstd } = tensors;
  if (x.size === 0) return;
  const columns = x.shape.at(-1)!;
  const rows = x.size / columns;
  const vectors = bias ? [x, y, weight, bias] : [x, y, weight];
  const { defines, rowsPerBlock } = planOfRows(columns, vectors);
  context.kernel(fusion.kernel(forwardKernel(variantOf(defines, tensors, y)))).launch(
    [Math.ceil(rows / rowsPerBlock), 1, 1],
    defines.BLOCK_THREADS,
    0,
    forwardKernel.byName({
      x: x.address,
      weight: weight.address,
      bias: addressOf(bias),
      y: y.address,
      mean: addressOf(mean),
      rstd: rstd.address,
      rows,
      columns,
      eps,
      fusion: fusion.argument,
    }),
  );
}

export interface NormBackward {
  readonly dy: MemoryView;
  readonly x: MemoryView;
  readonly weight: MemoryView;
  readonly mean?: MemoryView;
  readonly rstd: MemoryView;
  readonly dx: MemoryView;
}

interface BackwardPlan extends RowPlan {
  readonly rows: number;
  readonly columns: number;
  readonly blocks: number;
}

function backwardPlan(
  { multiprocessors }: CudaProperties,
  { dy, x, weight, dx }: NormBackward,
): BackwardPlan {
  const columns = weight.size;
  const rows = x.size / columns;
  const budget = columns < longRow ? backwardBudget : longRowBudget;
  const plan = planOfRows(columns, [x, dy, dx, weight], budget);
  const most = backwardBlocksPerMultiprocessor * multiprocessors;
  return { ...plan, rows, columns, blocks: Math.min(Math.ceil(rows / plan.rowsPerBlock), most) };
}

/** The column sums that `launchNormBackwardRows` writes for each of weight and bias, to be folded. */
function partialSpec({ blocks, rowsPerBlock, columns }: BackwardPlan, x: TensorSpec): TensorSpec {
  return { shape: [blocks * rowsPerBlock, columns], dtype: computeDType([x.dtype], []) };
}

/** Queues dx, and column sums over parts of the rows. */
function launchNormBackwardRows(
  context: CudaContext,
  tensors: NormBackward,
  partials: readonly { readonly address: number }[],
  fusion: KernelFusion,
): void {
  const { dy, x, weight, mean, rstd, dx } = tensors;
  const { defines, blocks, rows, columns } = backwardPlan(context.properties, tensors);
  if (blocks === 0) return;
  context.kernel(fusion.kernel(backwardKernel(variantOf(defines, tensors, dy)))).launch(
    [blocks, 1, 1],
    defines.BLOCK_THREADS,
    0,
    backwardKernel.byName({
      dy: dy.address,
      x: x.address,
      weight: weight.address,
      mean: addressOf(mean),
      rstd: rstd.address,
      dx: dx.address,
      partialWeight: partials[0]!.address,
      partialBias: partials[1]?.address ?? 0,
      rows,
      columns,
      fusion: fusion.argument,
    }),
  );
}

/** Queues dx and the gradients of the weight and, if there is one, of the bias. */
export function launchNormBackward(
  context: CudaContext,
  tensors: NormBackward,
  parameterGradients: readonly MemoryView[],
  fusion = noFusion,
): void {
  if (tensors.weight.size === 0) return;
  const spec = partialSpec(backwardPlan(context.properties, tensors), tensors.x);
  const partials = parameterGradients.map(() => denseWorkspace(context, spec));
  launchNormBackwardRows(context, tensors, partials, fusion);
  foldRows(context, partials, parameterGradients);
}

/** Lets the gradients of parameters be folded later, many at once; `tensorsOf` names an op's tensors. */
export function deferredNormSums(
  tensorsOf: (inputs: readonly MemoryView[], dx: MemoryView) => NormBackward,
): DeferredOutputs {
  return {
    first: 1,
    partials(properties, inputs, outputs) {
      const tensors = tensorsOf(inputs, outputs[0]!);
      const spec = partialSpec(backwardPlan(properties, tensors), tensors.x);
      return outputs.slice(1).map(() => spec);
    },
    launch: (context, inputs, [dx, ...partials], fusion = noFusion) =>
      launchNormBackwardRows(context, tensorsOf(inputs, dx!), partials, fusion),
    finish: foldRows,
  };
}

/** The definitions of a kernel; `result` is y or its gradient. */
function variantOf(
  defines: RowPlan['defines'],
  { weight, mean }: NormForward | NormBackward,
  result: MemoryView,
) {
  return {
    ...defines,
    RESULT: storageType(result.dtype),
    WEIGHT: storageType(weight.dtype),
    CENTERED: mean ? 1 : 0,
  };
}

function addressOf(tensor: MemoryView | undefined): number {
  return tensor ? tensor.address : 0;
}
