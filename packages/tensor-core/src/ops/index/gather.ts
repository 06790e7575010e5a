import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { ShapeError } from '../../base/errors.ts';
import { fromBits16, toBits16 } from '../../base/float16.ts';
import { defineOp } from '../../op/op.ts';
import { type Shape, formatShape, normalizeDimension, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { type IndexRange, checkIndices, outOfRange } from '../support/check-indices.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireIndices } from '../support/require-dtype.ts';

const forwardKernel = kernelVariants(kernelSource('index/gather.cu'), 'gather', {
  ...{ x: 'pointer', index: 'pointer', out: 'pointer' },
  ...{ size: 'int64', length: 'int64', chosen: 'int64', inner: 'int64' },
});
const backwardKernel = kernelVariants(kernelSource('index/gather.cu'), 'gather_backward', {
  ...{ dy: 'pointer', index: 'pointer', dx: 'pointer' },
  ...{ owners: 'int64', length: 'int64', chosen: 'int64', inner: 'int64' },
});
const threads = 256;

interface GatherAttributes {
  readonly dimension: number;
}

/** The tensors as [outer, length, inner] and [outer, chosen, inner]. */
function extents(x: Shape, index: Shape, dimension: number) {
  const inner = sizeOf(x.slice(dimension + 1));
  return { outer: sizeOf(x.slice(0, dimension)), length: x[dimension]!, chosen: index[dimension]!, inner };
}

function checkShapes(x: TensorSpec, index: TensorSpec, dimension: number): void {
  const fits =
    x.shape.length === index.shape.length &&
    x.shape.every((length, d) => d === dimension || length === index.shape[d]);
  if (!fits) {
    throw new ShapeError(
      `gather: an index ${formatShape(index.shape)} does not fit ${formatShape(x.shape)}: ` +
        `all lengths but that of dimension ${dimension} must be equal; expand() the index.`,
    );
  }
}

const gatherOp = defineOp<GatherAttributes>({
  name: 'gather',
  autocast: 'none',
  infer: ([x, index], { dimension }) => {
    requireIndices('gather', 'index', index!);
    checkShapes(x!, index!, dimension);
    return [{ shape: index!.shape, dtype: x!.dtype }];
  },
  saves: () => ({ inputs: [1] }),
  gradient: ({ gradients, input, inputSpecs, attributes: { dimension } }) => [
    applyOne(gatherBackwardOp, [gradients[0]!, input(1)], { dimension, shape: inputSpecs[0]!.shape }),
    null,
  ],
  cuda: {
    kind: 'custom',
    launch(context, [x, index], [y], { dimension }) {
      if (y!.size === 0) return;
      const { length, chosen, inner } = extents(x!.shape, index!.shape, dimension);
      const variant = { ELEMENT: storageType(x!.dtype), INDEX: storageType(index!.dtype) };
      context.kernel(forwardKernel(variant)).launch(
        [Math.ceil(y!.size / threads), 1, 1],
        threads,
        0,
        forwardKernel.byName({
          x: x!.address,
          index: index!.address,
          out: y!.address,
          size: y!.size,
          length,
          chosen,
          inner,
        }),
      );
    },
  },
  cpu: {
    kind: 'host',
    checksValues: true,
    nodes: (graph, [x, index], { dimension }) => [
      graph.node('GatherElements', [x!, index!], { axis: dimension }, { shape: index!.shape }),
    ],
    run([x, index], [y], { dimension }) {
      const [from, to] = [x!.data, y!.data];
      forEachChoice(x!.shape, index!, dimension, (source, position) => (to[position] = from[source]!));
    },
  },
});

interface GatherBackwardAttributes extends GatherAttributes {
  readonly shape: Shape;
}

/** Zeros, to which each gradient is added where its element was taken, in ascending order. */
export const gatherBackwardOp = defineOp<GatherBackwardAttributes>({
  name: 'gatherBackward',
  autocast: 'none',
  infer: ([dy], { shape }) => [{ shape, dtype: dy!.dtype }],
  cuda: {
    kind: 'custom',
    launch(context, [dy, index], [dx], { dimension, shape }) {
      context.fillBytes(dx!.address, 0, dx!.byteLength);
      const { outer, length, chosen, inner } = extents(shape, index!.shape, dimension);
      const owners = outer * inner;
      if (owners === 0) return;
      const variant = { ELEMENT: storageType(dy!.dtype), INDEX: storageType(index!.dtype) };
      context.kernel(backwardKernel(variant)).launch(
        [Math.ceil(owners / threads), 1, 1],
        threads,
        0,
        backwardKernel.byName({
          dy: dy!.address,
          index: index!.address,
          dx: dx!.address,
          owners,
          length,
          chosen,
          inner,
        }),
      );
    },
  },
  cpu: {
    kind: 'host',
    run([dy, index], [dx], { dimension, shape }) {
      const { data: target, dtype } = dx!;
      const gradients = dy!.data;
      target.fill(0 as never);
      forEachChoice(shape, index!, dimension, (at, position) => {
        if (target instanceof Uint16Array) {
          const gradient = fromBits16(dtype, Number(gradients[position]));
          target[at] = toBits16(dtype, fromBits16(dtype, target[at]!) + gradient);
        } else {
          (target as Float32Array)[at]! += Number(gradients[position]);
        }
      });
    },
  },
});

function rangeOfIndices(length: number): IndexRange {
  return { op: 'gather', role: 'index', length, within: `a dimension of length ${length}` };
}

/** Calls `visit` with the flat position of each chosen element and of its index. Throws a ShapeError for an index outside. */
function forEachChoice(
  shape: Shape,
  index: HostArray,
  dimension: number,
  visit: (source: number, position: number) => void,
): void {
  const { length, chosen, inner } = extents(shape, index.shape, dimension);
  for (let position = 0; position < index.data.length; position++) {
    const at = Number(index.data[position]);
    if (at < 0 || at >= length) throw outOfRange(at, position, rangeOfIndices(length));
    const outer = Math.floor(position / (inner * chosen));
    visit((outer * length + at) * inner + (position % inner), position);
  }
}

/**
 * Elements of `x` chosen along one dimension, as torch.gather: for a matrix and dimension 1, y[i][j] = x[i][index[i][j]].
 * `index` is int32 or int64, and as long as `x` in every other dimension. An index outside is a ShapeError on the CPU and,
 * with ROOFLINE_CHECK_INDICES=1, on CUDA, where it otherwise gives NaN, or -1 for integers and true for bools. Throws a
 * ShapeError or DTypeError.
 */
export function gather(x: Tensor, dimension: number, index: Tensor, ...rest: []): Tensor {
  requireTensor('gather', x);
  requireTensor('gather', index);
  refuseMore('gather', rest);
  const along = normalizeDimension('gather', dimension, x.rank);
  requireIndices('gather', 'index', index);
  checkIndices(index, rangeOfIndices(x.shape[along]!), { onCpu: false });
  return applyOne(gatherOp, [x, index], { dimension: along });
}
