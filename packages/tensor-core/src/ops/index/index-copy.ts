import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import type { MemoryView, TensorSpec } from '../../base/memory-view.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { byteSize } from '../../base/dtype.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import { formatShape, normalizeDimension, sameShape, sizeOf } from '../../base/shape.ts';
import { shareMemory } from '../../tensor/storage/overlap.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { zeros } from '../creation/from-values.ts';
import { StridedLayout, collapse } from '../../op/kernel-arguments/strided-layout.ts';
import { copy } from '../copy/contiguous.ts';
import { expand, view } from '../shape/views.ts';
import { type IndexRange, checkIndices, requireInRange } from '../support/check-indices.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireIndices } from '../support/require-dtype.ts';
import { gather } from './gather.ts';

const kernel = kernelVariants(kernelSource('index/index_copy.cu'), 'index_copy', {
  ...{ target: 'pointer', otherTarget: 'pointer', index: 'pointer', source: 'pointer' },
  ...{ otherSource: 'pointer', places: 'struct', owners: 'int64', chosen: 'int64', length: 'int64' },
});
const threads = 256;

interface IndexCopyAttributes {
  readonly dimension: number;
}

function checkOperands(
  [target, index, source]: readonly TensorSpec[],
  { dimension }: IndexCopyAttributes,
): void {
  const op = 'indexCopyInPlace';
  requireIndices(op, 'index', index!);
  if (index!.shape.length !== 1) {
    throw new ShapeError(`${op}: the index must be a vector, not ${formatShape(index!.shape)}; reshape it.`);
  }
  const expected = target!.shape.map((length, d) => (d === dimension ? index!.shape[0]! : length));
  if (!sameShape(source!.shape, expected)) {
    throw new ShapeError(
      `${op}: a source ${formatShape(source!.shape)} does not fit: ${index!.shape[0]!} slices of ` +
        `${formatShape(target!.shape)} along dimension ${dimension} are ${formatShape(expected)}.`,
    );
  }
  if (source!.dtype !== target!.dtype) {
    throw new DTypeError(
      `${op}: a source of ${source!.dtype} is not written into ${target!.dtype}; cast() it first.`,
    );
  }
}

const indexCopyOp = defineOp<IndexCopyAttributes>({
  name: 'indexCopy_',
  autocast: 'none',
  infer: (inputs, attributes) => {
    checkOperands(inputs, attributes);
    return [inputs[0]!];
  },
  mutates: [0],
  saves: () => ({ inputs: [1] }),
  gradient: ({ gradients: [g], needs, input, inputSpecs, attributes: { dimension } }) => {
    const { shape } = inputSpecs[2]!;
    const index = input(1);
    return [
      needs[0] ? withoutSlices(g!, dimension, index) : null,
      null,
      needs[2]
        ? gather(g!, dimension, expand(view(index, columnShape(shape.length, dimension)), shape))
        : null,
    ];
  },
  cost: ([, index, source]) => ({ flops: 0, bytesMoved: bytesOf([index!, source!, source!]) }),
  cuda: { kind: 'custom', strided: true, rewrites: { takesTwo: [0, 2] }, launch: launchIndexCopy },
  cpu: {
    kind: 'host',
    checksValues: true,
    nodes: (graph, [target, index, source], { dimension }) => {
      const column = graph.reshape(index!, columnShape(source!.shape.length, dimension));
      const whole = graph.node(
        'Expand',
        [column, graph.integers(source!.shape)],
        {},
        { shape: source!.shape },
      );
      return [graph.node('ScatterElements', [target!, whole, source!], { axis: dimension })];
    },
    run([, index, source], [target], { dimension }) {
      writeSlices(target!, index!, source!, dimension);
    },
  },
});

/** A shape of ones except for the dimension, whose length is -1. */
function columnShape(rank: number, dimension: number): number[] {
  return Array.from({ length: rank }, (_, d) => (d === dimension ? -1 : 1));
}

/** `g` with zeros where slices were written. */
function withoutSlices(g: Tensor, dimension: number, index: Tensor): Tensor {
  const { dtype, device } = g;
  const rest = copy(g);
  const shape = rest.shape.map((length, d) => (d === dimension ? index.size : length));
  applyOne(indexCopyOp, [rest, index, zeros(shape, { dtype, device })], { dimension }).dispose();
  return rest;
}

/** What the kernel walks: all dimensions but that of the slices. Reused by each launch. */
const layout = new StridedLayout();
const wordBytes = { 1: 'uint8', 2: 'uint16', 4: 'uint32', 8: 'uint64' } as const;

function launchIndexCopy(
  context: CudaContext,
  inputs: readonly MemoryView[],
  { length: pairs }: readonly MemoryView[],
  { dimension }: IndexCopyAttributes,
): void {
  const [target, otherTarget, index, source, otherSource] =
    pairs === 2 ? inputs : [inputs[0], inputs[0], inputs[1], inputs[2], inputs[2]];
  if (source!.size === 0) return;
  const others = (operand: MemoryView) => operand.shape.map((length, d) => (d === dimension ? 1 : length));
  const operands = [target!, source!].map((operand) => ({
    shape: others(operand),
    strides: operand.strides,
  }));
  collapse(layout, others(target!), operands);
  const bytes = byteSize(target!.dtype) as keyof typeof wordBytes;
  const variant = {
    WORD: wordBytes[bytes],
    INDEX: storageType(index!.dtype),
    RANK: Math.max(1, layout.rank),
  };
  const steps = [target!.strides[dimension]!, source!.strides[dimension]!, index!.strides[0]!];
  context.kernel(kernel(variant)).launch(
    [Math.ceil(layout.size / threads), pairs, 1],
    threads,
    0,
    kernel.byName({
      target: target!.address,
      otherTarget: otherTarget!.address,
      index: index!.address,
      source: source!.address,
      otherSource: otherSource!.address,
      places: places(steps),
      owners: layout.size,
      chosen: index!.size,
      length: target!.shape[dimension]!,
    }),
  );
}

/** The kernel's `Places`, from `layout`. */
function places(steps: readonly number[]): Uint8Array {
  const rank = Math.max(1, layout.rank);
  const dimensions = Array.from({ length: rank }, (_, i) => rank - 1 - i);
  const isThere = layout.rank > 0;
  const numbers = [
    ...dimensions.map((d) => (isThere ? layout.lengths[d]! : 1)),
    ...dimensions.map((d) => (isThere ? layout.strideAt(0, d) : 0)),
    ...dimensions.map((d) => (isThere ? layout.strideAt(1, d) : 0)),
    ...steps,
  ];
  return new Uint8Array(BigInt64Array.from(numbers, BigInt).buffer);
}

function writeSlices(target: HostArray, index: HostArray, source: HostArray, dimension: number): void {
  const length = target.shape[dimension]!;
  // Checked before anything is written.
  requireInRange(index.data, rangeOf(length));
  const [outer, inner] = [target.shape.slice(0, dimension), target.shape.slice(dimension + 1)].map(sizeOf);
  const chosen = index.shape[0]!;
  for (let o = 0; o < outer!; o++) {
    for (let j = 0; j < chosen; j++) {
      const from = (o * chosen + j) * inner!;
      const to = (o * length + Number(index.data[j])) * inner!;
      target.data.set(source.data.subarray(from, from + inner!) as never, to);
    }
  }
}

function rangeOf(length: number): IndexRange {
  return { op: 'indexCopyInPlace', role: 'index', length, within: `a dimension of length ${length}` };
}

/** Throws a ShapeError if the target shares memory with what is read: elements could be read after they were written. */
function checkApart(target: Tensor, read: Tensor, role: string): void {
  if (!shareMemory(target, read)) return;
  throw new ShapeError(
    `indexCopyInPlace: the ${role} ${formatShape(read.shape)} shares memory with the target ` +
      `${formatShape(target.shape)}, so elements could be read after they were written; copy() the ${role}.`,
  );
}

/**
 * Overwrites slices of `target` along a dimension with those of `source`, as torch.index_copy_: for a matrix and dimension 0,
 * target[index[j]] = source[j]. `index` is an int32 or int64 vector; `source` has the target's dtype, and is as long as the
 * index along the dimension and as `target` along all others. No other element is read or written, so one row of a large
 * tensor costs one row, even if the index is on the GPU. For equal indices the last slice stays, and all of them get its
 * gradient, as in PyTorch.
 *
 * An index outside is a ShapeError on the CPU, before anything is written, and, with ROOFLINE_CHECK_INDICES=1, on CUDA, where
 * its slice is otherwise skipped. Recorded and refused like `addInPlace`. Throws a ShapeError, a DTypeError, or an
 * AutogradError.
 */
export function indexCopyInPlace(
  target: Tensor,
  dimension: number,
  index: Tensor,
  source: Tensor,
  ...rest: []
): void {
  requireTensor('indexCopyInPlace', target);
  requireTensor('indexCopyInPlace', index);
  requireTensor('indexCopyInPlace', source);
  refuseMore('indexCopyInPlace', rest);
  const along = normalizeDimension('indexCopyInPlace', dimension, target.rank);
  checkOperands([target, index, source], { dimension: along });
  checkApart(target, index, 'index');
  checkApart(target, source, 'source');
  // If slices have no elements, no op runs that would check the index.
  checkIndices(index, rangeOf(target.shape[along]!), { onCpu: target.size === 0 });
  applyOne(indexCopyOp, [target, index, source], { dimension: along }).dispose();
}
