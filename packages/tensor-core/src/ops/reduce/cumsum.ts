import { refuseMore } from '../../op/require-tensor.ts';
import { applyOne } from '../../op/apply.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { type DType, isFloatingPoint } from '../../base/dtype.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { numbersOf, storeNumbers } from '../support/host-numbers.ts';
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

interface CumsumAttributes {
  readonly dimension: number;
  /** Whether to sum from the back. */
  readonly reverse: boolean;
}

const rowsKernel = kernelVariants(kernelSource('reduce/cumulative_sum.cu'), 'cumulative_sum_rows', {
  ...{ x: 'pointer', y: 'pointer', length: 'int64', reverse: 'int32' },
});
const columnsKernel = kernelVariants(kernelSource('reduce/cumulative_sum.cu'), 'cumulative_sum_columns', {
  ...{ x: 'pointer', y: 'pointer', columns: 'int64', length: 'int64', inner: 'int64', reverse: 'int32' },
});
const threads = 256;
/** Rows of up to so many elements are summed by one thread each. */
const longestRowOfThread = 32;

const cumsumOp: ComputeOp<CumsumAttributes> = defineOp<CumsumAttributes>({
  name: 'cumsum',
  autocast: 'float32',
  infer: ([x]) => [{ shape: x!.shape, dtype: summedDType(x!.dtype) }],
  gradient: ({ gradients, attributes: { dimension, reverse } }) => [
    applyOne(cumsumOp, [gradients[0]!], { dimension, reverse: !reverse }),
  ],
  cost: (inputs, outputs) => ({
    flops: sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    launch: (context, [x], [y], { dimension, reverse }) => {
      if (y!.size > 0) launch(context, x!, y!, extentsAround(x!.shape, dimension), reverse);
    },
  },
  cpu: {
    kind: 'host',
    run: ([x], [y], { dimension, reverse }) => {
      const extents = extentsAround(x!.shape, dimension);
      if (isFloatingPoint(x!.dtype)) addUp(x!, y!, extents, reverse);
      else addUpIntegers(x!, y!.data as BigInt64Array, extents, reverse);
    },
  },
});

function summedDType(dtype: DType): DType {
  return isFloatingPoint(dtype) ? dtype : 'int64';
}

function launch(
  context: CudaContext,
  x: MemoryView,
  y: MemoryView,
  extents: Extents,
  reverse: boolean,
): void {
  const { outer, length, inner } = extents;
  const defines = {
    ELEMENT: storageType(x.dtype),
    RESULT: storageType(y.dtype),
    SUM: isFloatingPoint(x.dtype) ? 'double' : 'int64',
  };
  const direction = reverse ? 1 : 0;
  const rows = (from: number, to: number) =>
    context
      .kernel(rowsKernel(defines))
      .launch(
        [outer * inner, 1, 1],
        threads,
        0,
        rowsKernel.byName({ x: from, y: to, length, reverse: direction }),
      );
  if (inner === 1 && length > longestRowOfThread) {
    rows(x.address, y.address);
  } else if (columnsAreFew(extents)) {
    const source = middleLast(x, x.address, extents);
    const target = middleLast(y, y.address, extents);
    const [from, to] = [denseWorkspace(context, source), denseWorkspace(context, target)];
    context.copy(source, from);
    rows(from.address, to.address);
    context.copy(to, target);
  } else {
    const columns = outer * inner;
    context.kernel(columnsKernel(defines)).launch(
      [Math.ceil(columns / threads), 1, 1],
      threads,
      0,
      columnsKernel.byName({
        x: x.address,
        y: y.address,
        columns,
        length,
        inner,
        reverse: direction,
      }),
    );
  }
}

/** Calls `visit` with the positions along the dimension, one line after the other, in order. */
function forEachLine(
  { outer, length, inner }: Extents,
  reverse: boolean,
  visit: (first: number, step: number, count: number) => void,
): void {
  const step = reverse ? -inner : inner;
  for (let line = 0; line < outer * inner; line++) {
    const start = Math.floor(line / inner) * length * inner + (line % inner);
    visit(reverse ? start + (length - 1) * inner : start, step, length);
  }
}

/** Floating point, with the sums in float64. */
function addUp(x: HostArray, y: HostArray, extents: Extents, reverse: boolean): void {
  const values = numbersOf(x) as Float32Array | Float64Array;
  const sums = y.data instanceof Uint16Array ? new Float32Array(y.data.length) : (y.data as Float32Array);
  forEachLine(extents, reverse, (first, step, count) => {
    let sum = 0;
    for (let i = 0, at = first; i < count; i++, at += step) {
      sum += values[at]!;
      sums[at] = sum;
    }
  });
  if (sums !== y.data) storeNumbers(y, sums);
}

/** Integers, modulo 2^64. */
function addUpIntegers(x: HostArray, sums: BigInt64Array, extents: Extents, reverse: boolean): void {
  const values = numbersOf(x);
  forEachLine(extents, reverse, (first, step, count) => {
    let sum = 0n;
    for (let i = 0, at = first; i < count; i++, at += step) {
      sum = BigInt.asIntN(64, sum + BigInt(values[at]!));
      sums[at] = sum;
    }
  });
}

/**
 * The sum of the elements up to each one along a dimension; int64 for integers and bools. Calculated in float64 and rounded to
 * the dtype, so that long sums lose no digits. Throws a ShapeError.
 */
export function cumsum(x: Tensor, dimension: number, ...rest: []): Tensor {
  refuseMore('cumsum', rest);
  return applyOne(cumsumOp, [x], { dimension: dimensionOf('cumsum', x, dimension), reverse: false });
}
