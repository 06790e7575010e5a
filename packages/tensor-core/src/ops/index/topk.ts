import { checkFlag, checkOptions, describeValue } from '@roofline/cuda/host';
import { apply, applyOne } from '../../op/apply.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { byteSize } from '../../base/dtype.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { transpose, view } from '../shape/views.ts';
import { type NumberArray, numbersOf } from '../support/host-numbers.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { dimensionOf } from '../support/one-dimension.ts';
import { gatherBackwardOp } from './gather.ts';

interface TopkAttributes {
  readonly k: number;
  readonly largest: boolean;
}

const kernel = kernelVariants(kernelSource('index/top_k.cu'), 'top_k', {
  ...{ x: 'pointer', values: 'pointer', indices: 'pointer', order: 'pointer' },
  ...{ columns: 'int32', k: 'int32', slots: 'int32' },
});
const threads = 256;

/** Along the last dimension: the chosen elements in order, and their indices. */
const topkOp: ComputeOp<TopkAttributes> = defineOp<TopkAttributes>({
  name: 'topk',
  autocast: 'none',
  infer: ([x], { k }) => {
    if (x!.dtype === 'bool') throw new DTypeError('topk: bools have no order; cast() them first.');
    const shape = [...x!.shape.slice(0, -1), k];
    return [
      { shape, dtype: x!.dtype },
      { shape, dtype: 'int64' },
    ];
  },
  saves: () => ({ outputs: [1] }),
  gradient: ({ gradients, output, inputSpecs }) => {
    const { shape } = inputSpecs[0]!;
    return [applyOne(gatherBackwardOp, [gradients[0]!, output(1)], { dimension: shape.length - 1, shape })];
  },
  cost: (inputs, outputs) => ({
    flops: sizeOf(inputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    launch: (context, [x], [values, indices], attributes) =>
      launch(context, x!, values!, indices!, attributes),
  },
  cpu: {
    kind: 'host',
    run: ([x], [values, indices], attributes) =>
      choose(x!, values!, indices!.data as BigInt64Array, attributes),
  },
});

function launch(
  context: CudaContext,
  x: MemoryView,
  values: MemoryView,
  indices: MemoryView,
  { k, largest }: TopkAttributes,
): void {
  if (values.size === 0) return;
  const columns = x.shape.at(-1)!;
  const rows = x.size / columns;
  const slots = 2 ** Math.ceil(Math.log2(k));
  const order = context.workspace(rows * slots * Uint32Array.BYTES_PER_ELEMENT);
  const defines = {
    ELEMENT: storageType(x.dtype),
    KEY: byteSize(x.dtype) === 8 ? 'uint64' : 'uint32',
    LARGEST: largest ? 1 : 0,
  };
  context.kernel(kernel(defines)).launch(
    [rows, 1, 1],
    threads,
    0,
    kernel.byName({
      x: x.address,
      values: values.address,
      indices: indices.address,
      order,
      columns,
      k,
      slots,
    }),
  );
}

function choose(
  x: HostArray,
  values: HostArray,
  indices: BigInt64Array,
  { k, largest }: TopkAttributes,
): void {
  const numbers = numbersOf(x);
  const columns = x.shape.at(-1)!;
  for (let row = 0; row * k < indices.length; row++) {
    const start = row * columns;
    chooseOfRow(numbers.subarray(start, start + columns), k, largest).forEach((column, i) => {
      indices[row * k + i] = BigInt(column);
      values.data[row * k + i] = x.data[start + column]!;
    });
  }
}

/** The indices of the k largest or smallest elements of a row, in order. */
function chooseOfRow(row: NumberArray, k: number, largest: boolean): number[] {
  // Typed arrays are sorted numerically, with NaN last.
  const sorted = row.slice().sort();
  const last = sorted[largest ? row.length - k : k - 1]!;
  const isNaN = (value: number | bigint) => value !== value;
  const precedes = (a: number | bigint, b: number | bigint) =>
    largest ? a > b || (isNaN(a) && !isNaN(b)) : a < b || (isNaN(b) && !isNaN(a));
  const [before, equal]: [number[], number[]] = [[], []];
  row.forEach((value, column) => {
    if (precedes(value, last)) before.push(column);
    else if (equal.length < k && !precedes(last, value)) equal.push(column);
  });
  // The sort is stable: equal elements stay in the order of their indices.
  before.sort((a, b) => (precedes(row[a]!, row[b]!) ? -1 : precedes(row[b]!, row[a]!) ? 1 : 0));
  return [...before, ...equal.slice(0, k - before.length)];
}

/** Options of `topk`. */
export interface TopkOptions {
  /** Default the last one; negative ones count from the back. */
  dimension?: number;
  /** False for the smallest. Default true. */
  largest?: boolean;
}

/**
 * The `k` largest elements along a dimension, the largest first, and their indices, int64; equal elements are in the order of
 * their indices. NaN counts as the largest, as in torch.topk. The chosen elements get the gradient. Throws a ShapeError, or a
 * DTypeError for bool.
 */
export function topk(x: Tensor, k: number, options: TopkOptions = {}): { values: Tensor; indices: Tensor } {
  checkOptions('topk', options, ['dimension', 'largest']);
  const { dimension = -1, largest = true } = options;
  checkFlag('topk', 'largest', largest);
  const dim = dimensionOf('topk', x, dimension);
  const length = x.rank === 0 ? 1 : x.shape[dim]!;
  if (!Number.isInteger(k) || k < 0 || k > length) {
    throw new ShapeError(
      `topk: k must be a whole number from 0 to ${length}, the length of dimension ${dimension} of ` +
        `${formatShape(x.shape)}, not ${describeValue(k)}.`,
    );
  }
  return scope(() => {
    const isScalar = x.rank === 0;
    const rows = isScalar ? view(x, [1]) : transpose(x, dim, -1);
    const [values, indices] = apply(topkOp, [rows], { k, largest });
    const backInPlace = (chosen: Tensor) =>
      isScalar && k === 1 ? view(chosen, []) : transpose(chosen, dim, -1);
    return { values: backInPlace(values!), indices: backInPlace(indices!) };
  });
}
