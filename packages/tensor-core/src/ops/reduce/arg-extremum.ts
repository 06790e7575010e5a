import { requireTensor } from '../../op/require-tensor.ts';
import { applyOne } from '../../op/apply.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { bytesOf } from '../../op/cost.ts';
import { defineOp } from '../../op/op.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { type Shape, formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { numbersOf } from '../support/host-numbers.ts';
import { denseWorkspace } from '../support/dense-memory.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import {
  type Extents,
  columnsAreFew,
  dimensionOf,
  extentsAround,
  middleLast,
} from '../support/one-dimension.ts';
import { reducedShape, checkReduction } from './reductions.ts';

interface ArgExtremumAttributes {
  /** Null to search all dimensions as one. */
  readonly dimension: number | null;
  readonly keepDims: boolean;
}

/** Options of `argmax` and `argmin`. */
export interface ArgExtremumOptions {
  /** The one dimension to search; if absent, all in row-major order. Negative ones count from the back. */
  dims?: number;
  /** Whether to keep the searched dimension with length one. */
  keepDims?: boolean;
}

const rowsKernel = kernelVariants(kernelSource('reduce/arg_extremum.cu'), 'arg_extremum_rows', {
  ...{ x: 'pointer', candidates: 'pointer', index: 'pointer' },
  ...{ rows: 'int64', length: 'int64', items: 'int64', chunk: 'int64', chunks: 'int64' },
});
const columnsKernel = kernelVariants(kernelSource('reduce/arg_extremum.cu'), 'arg_extremum_columns', {
  ...{ x: 'pointer', index: 'pointer', columns: 'int64', length: 'int64', inner: 'int64' },
});
const threads = 256;
const longestRowOfWarp = 1024;
const smallestChunk = 4096;
const blocksPerMultiprocessor = 4;

function resultShape(shape: Shape, { dimension, keepDims }: ArgExtremumAttributes): Shape {
  return reducedShape(shape, { dims: dimension === null ? [...shape.keys()] : [dimension], keepDims });
}

function argExtremum(name: 'argmax' | 'argmin') {
  const largest = name === 'argmax';
  const op = defineOp<ArgExtremumAttributes>({
    name,
    autocast: 'none',
    infer: ([x], attributes) => {
      if (x!.dtype === 'bool') throw new DTypeError(`${name}: bools have no order; cast() them first.`);
      return [{ shape: resultShape(x!.shape, attributes), dtype: 'int64' }];
    },
    variant: ({ dimension, keepDims }) => `${dimension}${keepDims ? 'k' : ''}`,
    cost: (inputs, outputs) => ({
      flops: sizeOf(inputs[0]!.shape),
      bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    }),
    cuda: {
      kind: 'custom',
      launch: (context, [x], [index], { dimension }) =>
        launch(context, x!, index!, extentsAround(x!.shape, dimension), largest),
    },
    cpu: {
      kind: 'host',
      run: ([x], [index], { dimension }) =>
        search(x!, index!.data as BigInt64Array, extentsAround(x!.shape, dimension), largest),
    },
  });

  return (x: Tensor, options: ArgExtremumOptions = {}): Tensor => {
    requireTensor(name, x);
    const { dims, keepDims = false } = checkReduction(name, options);
    const dimension = dims === undefined ? null : dimensionOf(name, x, dims);
    if (extentsAround(x.shape, dimension).length === 0) {
      throw new ShapeError(
        `${name}: ${formatShape(x.shape)} has no elements to search; give a dimension that has.`,
      );
    }
    return applyOne(op, [x], { dimension: x.rank === 0 ? null : dimension, keepDims });
  };
}

function launch(
  context: CudaContext,
  x: MemoryView,
  index: MemoryView,
  extents: Extents,
  largest: boolean,
): void {
  const { outer, length, inner } = extents;
  if (index.size === 0) return;
  const defines = { ELEMENT: storageType(x.dtype), LARGEST: largest ? 1 : 0 };
  if (inner === 1) {
    launchRows(context, x.address, index.address, outer, length, defines);
  } else if (columnsAreFew(extents)) {
    const columns = middleLast(x, x.address, extents);
    const rows = denseWorkspace(context, columns);
    context.copy(columns, rows);
    launchRows(context, rows.address, index.address, outer * inner, length, defines);
  } else {
    context.kernel(columnsKernel({ ...defines, WIDTH: 32 })).launch(
      [Math.ceil((outer * inner) / threads), 1, 1],
      threads,
      0,
      columnsKernel.byName({
        x: x.address,
        index: index.address,
        columns: outer * inner,
        length,
        inner,
      }),
    );
  }
}

/** Searches rows; long ones in several pieces, whose best are then searched. */
function launchRows(
  context: CudaContext,
  x: number,
  index: number,
  rows: number,
  length: number,
  defines: { readonly ELEMENT: string; readonly LARGEST: number },
): void {
  const search = (candidates: number, to: number, items: number, chunk: number) => {
    const chunks = Math.ceil(items / chunk);
    const width = chunk <= longestRowOfWarp ? 32 : threads;
    context
      .kernel(rowsKernel({ ...defines, WIDTH: width }))
      .launch(
        [Math.ceil((rows * chunks * width) / threads), 1, 1],
        threads,
        0,
        rowsKernel.byName({ x, candidates, index: to, rows, length, items, chunk, chunks }),
      );
    return chunks;
  };
  const wanted = Math.ceil((blocksPerMultiprocessor * context.properties.multiprocessors) / rows);
  const chunks = Math.max(1, Math.min(wanted, Math.floor(length / smallestChunk)));
  if (chunks === 1) {
    search(0, index, length, length);
    return;
  }
  const best = context.workspace(rows * chunks * BigInt64Array.BYTES_PER_ELEMENT);
  const found = search(0, best, length, Math.ceil(length / chunks));
  search(best, index, found, found);
}

function search(
  x: HostArray,
  index: BigInt64Array,
  { outer, length, inner }: Extents,
  largest: boolean,
): void {
  const values = numbersOf(x);
  const best = new Float64Array(inner);
  for (let o = 0; o < outer; o++) {
    const start = o * length * inner;
    best.fill(0);
    for (let j = 1; j < length; j++) {
      for (let i = 0; i < inner; i++) {
        const value = values[start + j * inner + i]!;
        const before = values[start + best[i]! * inner + i]!;
        const isNaN = value !== value && before === before;
        if ((largest ? value > before : value < before) || isNaN) best[i] = j;
      }
    }
    for (let i = 0; i < inner; i++) index[o * inner + i] = BigInt(best[i]!);
  }
}

/**
 * The index, int64, of the largest element along `dims`, or of all in row-major order; the first of equal ones. NaN
 * counts as the largest, as in torch.argmax. Throws a ShapeError where there is nothing to search, a DTypeError for bool.
 */
export const argmax = argExtremum('argmax');

/**
 * The index, int64, of the smallest element along `dims`, or of all in row-major order; the first of equal ones. NaN
 * counts as the smallest, as in torch.argmin. Throws a ShapeError where there is nothing to search, a DTypeError for bool.
 */
export const argmin = argExtremum('argmin');
