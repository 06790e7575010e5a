import { checkNumber } from '../../tensor/check-value.ts';
import type { MemoryView } from '../../op/memory-view.ts';
import type { TensorSpec } from '../../op/memory-view.ts';
import type { CudaContext, EdgePlaces } from '../../op/cuda-lowering.ts';
import { storageType } from '../../devices/cuda/compile/c-types.ts';
import { byteSize } from '../../tensor/dtype.ts';
import { DTypeError, ShapeError } from '../../errors.ts';
import { formatShape } from '../../tensor/shape.ts';
import { noEdges } from '../support/no-edges.ts';
import { kernelVariants } from '../support/kernel-variants.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';
import { type RowPlan, rowPlan, vectorLength } from '../support/row-kernel.ts';

const forwardKernel = kernelVariants('nn/norm.cu', 'norm_forward', 'pppppplidT');
const backwardKernel = kernelVariants('nn/norm_backward.cu', 'norm_backward', 'ppppppppliT');
const foldKernel = kernelVariants('nn/norm_backward.cu', 'norm_fold', 'ppppii');

// The gradient holds two rows, the next two, and column sums in registers.
const backwardBudget = { preferredElements: 8, mostElements: 16 };
const backwardBlocksPerMultiprocessor = 2;
/** Threads keep a part of a row in registers up to this length at least, forward and backward. */
const longestRow = 8192;
/** Forward, x is loaded and y stored; backward, dy and dx. */
export const normEdges: EdgePlaces = { input: 0, output: 0, longestRow };
const foldThreads = 1024;
const foldColumns = 32;

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

/** Throws a RooflineError (code RANGE) unless `eps`, which is added to a variance, is a number of zero or more. */
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

export function launchNorm(context: CudaContext, tensors: NormForward, eps: number, edges = noEdges): void {
  const { x, weight, bias, y, mean, rstd } = tensors;
  if (x.size === 0) return;
  const columns = x.shape.at(-1)!;
  const rows = x.size / columns;
  const vectors = bias ? [x, y, weight, bias] : [x, y, weight];
  const { defines, rowsPerBlock } = rowPlan(x.dtype, columns, vectorLength(columns, vectors));
  context
    .kernel(edges.kernel(forwardKernel(variantOf(defines, tensors, y))))
    .launch([Math.ceil(rows / rowsPerBlock), 1, 1], defines.BLOCK_THREADS, 0, [
      x.address,
      weight.address,
      addressOf(bias),
      y.address,
      addressOf(mean),
      rstd.address,
      rows,
      columns,
      eps,
      edges.argument,
    ]);
}

export interface NormBackward {
  readonly dy: MemoryView;
  readonly x: MemoryView;
  readonly weight: MemoryView;
  readonly mean?: MemoryView;
  readonly rstd: MemoryView;
  readonly dx: MemoryView;
  readonly dweight: MemoryView;
  readonly dbias?: MemoryView;
}

export function launchNormBackward(context: CudaContext, tensors: NormBackward, edges = noEdges): void {
  const { dy, x, weight, mean, rstd, dx, dweight, dbias } = tensors;
  const columns = weight.size;
  if (columns === 0) return;
  const rows = x.size / columns;
  const { defines, rowsPerBlock } = rowPlan(
    x.dtype,
    columns,
    vectorLength(columns, [x, dy, dx, weight]),
    backwardBudget,
  );
  const variant = variantOf(defines, tensors, dy);
  const most = backwardBlocksPerMultiprocessor * context.properties.multiprocessors;
  const blocks = Math.min(Math.ceil(rows / rowsPerBlock), most);
  const count = blocks * rowsPerBlock;
  const partialBytes = count * columns * byteSize(rstd.dtype);
  const partialWeight = context.workspace(partialBytes);
  const partialBias = mean ? context.workspace(partialBytes) : 0;
  if (blocks > 0) {
    context
      .kernel(edges.kernel(backwardKernel(variant)))
      .launch([blocks, 1, 1], defines.BLOCK_THREADS, 0, [
        dy.address,
        x.address,
        weight.address,
        addressOf(mean),
        rstd.address,
        dx.address,
        partialWeight,
        partialBias,
        rows,
        columns,
        edges.argument,
      ]);
  }
  context
    .kernel(foldKernel(variant))
    .launch([Math.ceil(columns / foldColumns), mean ? 2 : 1, 1], foldThreads, 0, [
      partialWeight,
      dweight.address,
      partialBias,
      addressOf(dbias),
      count,
      columns,
    ]);
}

/** The definitions of a kernel of those files; `result` is y or its gradient. */
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
