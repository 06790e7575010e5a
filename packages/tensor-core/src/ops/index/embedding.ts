import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import type { MemoryView, TensorSpec } from '../../base/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { byteSize } from '../../base/dtype.ts';
import { ShapeError } from '../../base/errors.ts';
import { fromBits16, toBits16 } from '../../base/float16.ts';
import { defineOp } from '../../op/op.ts';
import { formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { expand, reshape } from '../shape/views.ts';
import { type IndexRange, checkIndices, outOfRange } from '../support/check-indices.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireIndices } from '../support/require-dtype.ts';
import { vectorLength } from '../support/row-kernel.ts';
import { gather } from './gather.ts';

const forwardKernel = kernelVariants(kernelSource('index/embedding.cu'), 'embedding', {
  ...{ weight: 'pointer', ids: 'pointer', y: 'pointer', unitsPerRow: 'int32', vocabulary: 'int64' },
});
const sortKernel = kernelVariants(kernelSource('index/embedding_sort.cu'), 'embedding_sort', {
  ...{ ids: 'pointer', ranges: 'pointer', keys: 'pointer', positions: 'pointer' },
  ...{ count: 'int32', vocabulary: 'int32', passes: 'int32', zeroes: 'int32' },
});
const backwardKernel = kernelVariants(kernelSource('index/embedding_backward.cu'), 'embedding_backward', {
  ...{ dy: 'pointer', positions: 'pointer', ranges: 'pointer', dweight: 'pointer', columns: 'int32' },
});
const sortThreads = 1024;
const sortDigitBits = 8;
/** Up to so many rows, the block that sorts zeroes the ranges before a separate fill could start. */
const mostRowsZeroed = 2 ** 14;
const maxThreads = 256;
const maxVectors = 4;

function checkOperands(weight: TensorSpec, ids: TensorSpec): void {
  requireIndices('embedding', 'ids', ids);
  if (weight.shape.length === 2) return;
  throw new ShapeError(
    `embedding: weight must be [vocabulary, dimension], not ${formatShape(weight.shape)}.`,
  );
}

export const embeddingOp = defineOp({
  name: 'embedding',
  autocast: 'none',
  infer: ([weight, ids]) => {
    checkOperands(weight!, ids!);
    return [{ shape: [...ids!.shape, weight!.shape[1]!], dtype: weight!.dtype }];
  },
  saves: () => ({ inputs: [1] }),
  gradient: ({ gradients, input, inputSpecs, destination }) => {
    const attributes = { vocabulary: inputSpecs[0]!.shape[0]! };
    return [applyOne(embeddingBackwardOp, [gradients[0]!, input(1)], attributes, destination(0)), null];
  },
  reference: ([weight, ids]) => {
    const [{ size, shape }, columns] = [ids!, weight!.shape[1]!];
    const rows = expand(reshape(ids!, [size, 1]), [size, columns]);
    return [reshape(gather(weight!, 0, rows), [...shape, columns])];
  },
  cost: ([, ids], outputs) => ({ flops: 0, bytesMoved: bytesOf([ids!]) + 2 * bytesOf(outputs) }),
  cuda: { kind: 'custom', launch: launchForward },
  cpu: {
    kind: 'host',
    checksValues: true,
    nodes: (graph, [weight, ids], _, { outputs }) => [
      graph.node('Gather', [weight!, ids!], { axis: 0 }, { shape: outputs[0]!.shape }),
    ],
    run([weight, ids], [y]) {
      const [vocabulary, dimension] = weight!.shape as [number, number];
      const [source, target] = [weight!.data, y!.data];
      forEachId(ids!, vocabulary, (id, n) => {
        target.set(source.subarray(id * dimension, (id + 1) * dimension) as never, n * dimension);
      });
    },
  },
});

export interface EmbeddingBackwardAttributes {
  readonly vocabulary: number;
}

/** dweight[v] = Σ dy[n] over the n with ids[n] = v, dense, in ascending n. */
export const embeddingBackwardOp = defineOp<EmbeddingBackwardAttributes>({
  name: 'embeddingBackward',
  autocast: 'none',
  infer: ([dy], { vocabulary }) => [{ shape: [vocabulary, dy!.shape.at(-1)!], dtype: dy!.dtype }],
  cost: ([dy, ids], outputs) => ({ flops: sizeOf(dy!.shape), bytesMoved: bytesOf([dy!, ids!, ...outputs]) }),
  cuda: {
    kind: 'custom',
    launch: (context, inputs, [dweight], attributes) =>
      launchEmbeddingBackward(context, inputs, dweight!, attributes, { adds: false }),
  },
  cpu: {
    kind: 'host',
    run([dy, ids], [dweight], { vocabulary }) {
      const { data, shape, dtype } = dweight!;
      if (data instanceof Uint16Array) {
        const rows = Float32Array.from(dy!.data as Uint16Array, (bits) => fromBits16(dtype, bits));
        const sums = new Float32Array(data.length);
        addRows(rows, ids!, sums, vocabulary, shape[1]!);
        for (let i = 0; i < data.length; i++) data[i] = toBits16(dtype, sums[i]!);
      } else {
        const sums = data as Float32Array | Float64Array;
        sums.fill(0);
        addRows(dy!.data as typeof sums, ids!, sums, vocabulary, shape[1]!);
      }
    },
  },
});

function addRows(
  rows: Float32Array | Float64Array,
  ids: HostArray,
  sums: Float32Array | Float64Array,
  vocabulary: number,
  dimension: number,
): void {
  forEachId(ids, vocabulary, (id, n) => {
    const [from, to] = [n * dimension, id * dimension];
    for (let i = 0; i < dimension; i++) sums[to + i]! += rows[from + i]!;
  });
}

function rangeOfIds(vocabulary: number): IndexRange {
  return { op: 'embedding', role: 'id', length: vocabulary, within: `a table of ${vocabulary} rows` };
}

/** Calls `visit` with each id and its position. Throws a ShapeError for an id outside the table. */
function forEachId(
  { data }: HostArray,
  vocabulary: number,
  visit: (id: number, position: number) => void,
): void {
  for (let n = 0; n < data.length; n++) {
    const id = Number(data[n]);
    if (id < 0 || id >= vocabulary) throw outOfRange(id, n, rangeOfIds(vocabulary));
    visit(id, n);
  }
}

/** The widest unsigned integers that make up rows of so many bytes, and how many of them one load takes. */
function copyUnit(
  rowBytes: number,
  addresses: readonly number[],
): { bytes: number; word: string; words: number } {
  const bytes = [16, 8, 4, 2, 1].find((size) =>
    [rowBytes, ...addresses].every((value) => value % size === 0),
  )!;
  return bytes < 4
    ? { bytes, word: bytes === 2 ? 'uint16' : 'uint8', words: 1 }
    : { bytes, word: 'uint32', words: bytes / 4 };
}

function launchForward(
  context: CudaContext,
  [weight, ids]: readonly MemoryView[],
  [y]: readonly MemoryView[],
): void {
  if (y!.size === 0) return;
  const [vocabulary, dimension] = weight!.shape as [number, number];
  const [from, to] = [weight!.address, y!.address];
  const rowBytes = dimension * byteSize(weight!.dtype);
  const { bytes, word, words } = copyUnit(rowBytes, [from, to]);
  const units = rowBytes / bytes;
  context
    .kernel(forwardKernel({ INDEX: storageType(ids!.dtype), WORD: word, WORDS: words }))
    .launch(
      [ids!.size, 1, 1],
      wholeWarps(units),
      0,
      forwardKernel.byName({ weight: from, ids: ids!.address, y: to, unitsPerRow: units, vocabulary }),
    );
}

/** Writes the gradient, or adds it to what is there, which touches only rows that were looked up. */
export function launchEmbeddingBackward(
  context: CudaContext,
  [dy, ids]: readonly MemoryView[],
  dweight: MemoryView,
  { vocabulary }: EmbeddingBackwardAttributes,
  { adds }: { readonly adds: boolean },
): void {
  if (dweight.size === 0) return;
  const { positions, ranges } = sortIds(context, ids!, vocabulary);
  const columns = dweight.shape[1]!;
  const length = vectorLength(columns, [dy!, dweight]);
  const threads = wholeWarps(columns / length);
  const vectors = Math.min(maxVectors, Math.ceil(columns / length / threads));
  const element = { ELEMENT: storageType(dweight.dtype), VECTOR_LENGTH: length, VECTORS: vectors };
  const variant = { ...element, ADDS: Number(adds) };
  context
    .kernel(backwardKernel(variant))
    .launch(
      [vocabulary, Math.ceil(columns / (length * threads * vectors)), 1],
      threads,
      0,
      backwardKernel.byName({ dy: dy!.address, positions, ranges, dweight: dweight.address, columns }),
    );
}

/** The positions of ids, sorted by id and then by position, and each row's range of them. */
function sortIds(context: CudaContext, ids: MemoryView, vocabulary: number) {
  const rangeBytes = 8 * vocabulary;
  const ranges = context.workspace(rangeBytes);
  const zeroes = ids.size > 0 && vocabulary <= mostRowsZeroed;
  if (!zeroes) context.fillBytes(ranges, 0, rangeBytes);
  const halfBytes = 4 * ids.size;
  const [keys, positions] = [context.workspace(2 * halfBytes), context.workspace(2 * halfBytes)];
  // Ids out of range are sorted as `vocabulary`, so its digits count, too.
  const passes = Math.ceil(Math.log2(vocabulary + 1) / sortDigitBits);
  if (ids.size > 0) {
    context.kernel(sortKernel({ INDEX: storageType(ids.dtype) })).launch(
      [1, 1, 1],
      sortThreads,
      0,
      sortKernel.byName({
        ids: ids.address,
        ranges,
        keys,
        positions,
        count: ids.size,
        vocabulary,
        passes,
        zeroes: Number(zeroes),
      }),
    );
  }
  return { positions: passes % 2 === 1 ? positions : positions + halfBytes, ranges };
}

function wholeWarps(units: number): number {
  return Math.min(maxThreads, Math.ceil(units / 32) * 32);
}

/**
 * Rows of `weight` [vocabulary, dimension] by their numbers: ids of any shape give [...ids.shape, dimension]. An id outside
 * the table is a ShapeError on the CPU and, with ROOFLINE_CHECK_INDICES=1, on CUDA, where it otherwise gives a row of NaN, or
 * of -1 for integers. Throws a ShapeError or DTypeError.
 */
export function embedding(weight: Tensor, ids: Tensor, ...rest: []): Tensor {
  requireTensor('embedding', weight);
  requireTensor('embedding', ids);
  refuseMore('embedding', rest);
  checkOperands(weight, ids);
  // If rows have no elements, no op runs that would check the ids.
  checkIndices(ids, rangeOfIds(weight.shape[0]!), { onCpu: weight.shape[1] === 0 });
  return applyOne(embeddingOp, [weight, ids], undefined);
}
