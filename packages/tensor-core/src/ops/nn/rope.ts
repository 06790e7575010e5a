import { refuseMore } from '../../op/require-tensor.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { isAligned } from '../../base/alignment.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { byteSize, computeDType } from '../../base/dtype.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { type Layout, type Shape, formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { add, mul, neg, sub } from '../elementwise/arithmetic.ts';
import { stack } from '../shape/concat.ts';
import { reshape, select } from '../shape/views.ts';
import { denseCopy } from '../support/dense-memory.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { offsetType } from '../../op/kernel-arguments/offset-type.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';

interface RopeAttributes {
  /** Whether to rotate by the negative angles, as the gradient does. */
  readonly inverse: boolean;
}

const kernel = kernelVariants(kernelSource('nn/rope.cu'), 'rope', {
  ...{ x0: 'pointer', x1: 'pointer', cosine: 'pointer', sine: 'pointer', y0: 'pointer', y1: 'pointer' },
  ...{ n0: 'int32', n1: 'int32', n2: 'int32', length: 'int32', columns: 'int32' },
  ...{ s0: 'int64', s1: 'int64', s2: 'int64', s3: 'int64' },
  ...{ t0: 'int64', t1: 'int64', t2: 'int64', t3: 'int64', sign: 'float32' },
});
const maxThreads = 256;
/** As the kernel's kTogether. */
const matricesTogether = 4;
const maxGridY = 65535;
const maxVectorBytes = 16;

function checkOperands(x: TensorSpec, cosine: TensorSpec, sine: TensorSpec): void {
  requireFloatingPoint('rope', 'x', x);
  const [length, columns] = x.shape.slice(-2);
  if (x.shape.length < 2 || columns! % 2 !== 0) {
    throw new ShapeError(`rope: x must be [..., T, d] with an even d, not ${formatShape(x.shape)}.`);
  }
  for (const [name, table] of Object.entries({ cosine, sine })) {
    if (table.dtype !== 'float32') throw new DTypeError(`rope: ${name} must be float32, not ${table.dtype}.`);
    if (table.shape.length !== 2 || table.shape[0] !== length || table.shape[1] !== columns! / 2) {
      throw new ShapeError(
        `rope: ${name} ${formatShape(table.shape)} must be ${formatShape([length!, columns! / 2])} for ` +
          `x ${formatShape(x.shape)}; slice the table to the sequence.`,
      );
    }
  }
}

const ropeOp: ComputeOp<RopeAttributes> = defineOp<RopeAttributes>({
  name: 'rope',
  autocast: 'none',
  infer: ([x, cosine, sine]) => {
    checkOperands(x!, cosine!, sine!);
    return [{ shape: x!.shape, dtype: x!.dtype }];
  },
  saves: () => ({ inputs: [1, 2] }),
  gradient: ({ gradients, input, attributes: { inverse } }) => [
    applyOne(ropeOp, [gradients[0]!, input(1), input(2)], { inverse: !inverse }),
    null,
    null,
  ],
  reference: ([x, cosine, sine], { inverse }) => {
    const wide = cast(x!, computeDType([x!.dtype], []));
    const pairs = reshape(wide, [...x!.shape.slice(0, -1), x!.shape.at(-1)! / 2, 2]);
    const [a, b] = [select(pairs, -1, 0), select(pairs, -1, 1)];
    // The tables are constants.
    const [c, s] = [cosine!.detach(), inverse ? neg(sine!.detach()) : sine!.detach()];
    const turned = [sub(mul(a, c), mul(b, s)), add(mul(a, s), mul(b, c))];
    return [cast(reshape(stack(turned, -1), x!.shape), x!.dtype)];
  },
  cost: (inputs, outputs) => ({
    flops: 3 * sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: { kind: 'custom', strided: true, rewrites: { takesTwo: [0], writesStrided }, launch },
  cpu: {
    kind: 'onnx',
    build: (graph, [x, cosine, sine], { inverse }) => {
      const turn = inverse ? graph.node('Neg', [sine!]) : sine!;
      return [
        x!.dtype === 'float64' || graph.standardOnly
          ? rotatePairs(graph, x!, cosine!, turn)
          : rotary(graph, x!, cosine!, turn),
      ];
    },
  },
});

function matricesOf({ shape }: TensorSpec): number {
  return sizeOf(shape.slice(0, -2));
}

/** ONNX Runtime's own node, which takes [batch, heads, T, d] and a first position. */
function rotary(graph: OnnxGraph, x: OnnxValue, cosine: OnnxValue, sine: OnnxValue): OnnxValue {
  const heads = graph.reshape(x, [matricesOf(x), 1, ...x.shape.slice(-2)]);
  const inputs = [heads, graph.integers([0]), cosine, sine];
  const turned = graph.node('RotaryEmbedding', inputs, { interleaved: 1 }, { domain: 'com.microsoft' });
  return graph.reshape(turned, x.shape);
}

function rotatePairs(graph: OnnxGraph, x: OnnxValue, cosine: OnnxValue, sine: OnnxValue): OnnxValue {
  const pairs = graph.reshape(x, [matricesOf(x), x.shape.at(-2)!, x.shape.at(-1)! / 2, 2]);
  const half = { shape: [...pairs.shape.slice(0, -1), 1], dtype: x.dtype };
  const [first, second] = graph.nodes('Split', [pairs], { axis: -1, num_outputs: 2 }, [half, half]);
  const [c, s] = [cosine, sine].map((table) =>
    graph.reshape(graph.cast(table, x.dtype), [...table.shape, 1]),
  );
  const product = (a: OnnxValue, b: OnnxValue) => graph.node('Mul', [a, b]);
  const left = graph.node('Sub', [product(first!, c!), product(second!, s!)]);
  const right = graph.node('Add', [product(first!, s!), product(second!, c!)]);
  return graph.reshape(graph.node('Concat', [left, right], { axis: -1 }, { shape: pairs.shape }), x.shape);
}

/** The most leading dimensions that the kernel walks. */
const mostLeading = 3;

/**
 * What the kernel walks: [n0, n1, n2, T, d], with strides of x and y for each but the last, in vectors of so many elements.
 */
interface KernelWalk {
  readonly lengths: readonly number[];
  readonly xStrides: readonly number[];
  readonly yStrides: readonly number[];
  readonly vectorLength: number;
}

/** Tensors of one layout. */
interface Alike extends Pick<MemoryView, 'shape' | 'strides' | 'dtype'> {
  readonly addresses: readonly number[];
}

/** The leading dimensions as three, after joining those that are dense in both x and y; null if more remain. */
function leadingDimensions(shape: Shape, x: Shape, y: Shape) {
  // Filled from the last on; those left over at the front have length one.
  const joined = { lengths: [1, 1, 1], xStrides: [0, 0, 0], yStrides: [0, 0, 0] };
  const { lengths, xStrides, yStrides } = joined;
  let at = mostLeading;
  for (let i = shape.length - 3; i >= 0; i--) {
    const length = shape[i]!;
    if (length === 1) continue;
    const isDense = (strides: Shape, of: readonly number[]) => strides[i] === of[at]! * lengths[at]!;
    if (at < mostLeading && isDense(x, xStrides) && isDense(y, yStrides)) {
      lengths[at]! *= length;
      continue;
    }
    if (at === 0) return null;
    at--;
    lengths[at] = length;
    xStrides[at] = x[i]!;
    yStrides[at] = y[i]!;
  }
  return joined;
}

/** Null for layouts that the kernel cannot walk: pairs that are apart or unaligned, or more than three leading dimensions. */
function kernelWalk(x: Alike, y: Alike): KernelWalk | null {
  const { shape, dtype } = x;
  const dimensions = leadingDimensions(shape, x.strides, y.strides);
  if (!dimensions || x.strides.at(-1) !== 1 || y.strides.at(-1) !== 1) return null;
  dimensions.xStrides.push(x.strides.at(-2)!);
  dimensions.yStrides.push(y.strides.at(-2)!);
  const size = byteSize(dtype);
  const addresses = [...x.addresses, ...y.addresses];
  for (let length = maxVectorBytes / size; length >= 2; length /= 2) {
    const isWhole = shape.at(-1)! % length === 0 && addresses.every((at) => isAligned(at, length * size));
    if (isWhole && areMultiples([...dimensions.xStrides, ...dimensions.yStrides], length)) {
      return { ...dimensions, vectorLength: length };
    }
  }
  return null;
}

function areMultiples(strides: readonly number[], length: number): boolean {
  for (let i = 0; i < strides.length; i++) if (strides[i]! % length !== 0) return false;
  return true;
}

/** Whether the kernel can write y: pairs side by side and aligned, and no more leading dimensions than it walks. */
function writesStrided({ shape, strides, offset }: Layout): boolean {
  return (
    shape.length <= mostLeading + 2 &&
    strides.at(-1) === 1 &&
    areMultiples([offset, ...strides.slice(0, -1)], 2)
  );
}

function alike(tensors: readonly MemoryView[]): Alike {
  const { shape, strides, dtype } = tensors[0]!;
  return { shape, strides, dtype, addresses: tensors.map(({ address }) => address) };
}

/** Contiguous copies, which the kernel can always read. */
function copied(context: CudaContext, tensors: readonly MemoryView[]): Alike {
  const copies = tensors.map((x) => denseCopy(context, x));
  return { ...copies[0]!, addresses: copies.map(({ address }) => address) };
}

/** The address of a table as the kernel reads it: dense, in vectors of half as many elements as x's. */
function tableAddress(context: CudaContext, table: MemoryView, { vectorLength }: KernelWalk): number {
  const isAligned = table.address % ((vectorLength / 2) * byteSize(table.dtype)) === 0;
  return table.isContiguous && isAligned ? table.address : denseCopy(context, table).address;
}

function launch(
  context: CudaContext,
  inputs: readonly MemoryView[],
  outputs: readonly MemoryView[],
  { inverse }: RopeAttributes,
): void {
  const tensors = inputs.slice(0, -2);
  const [cosine, sine] = inputs.slice(-2);
  const { size, shape, dtype } = tensors[0]!;
  if (size === 0) return;
  const y = alike(outputs);
  let x = alike(tensors);
  const walk = kernelWalk(x, y) ?? kernelWalk((x = copied(context, tensors)), y)!;
  const length = shape.at(-2)!;
  const columns = shape.at(-1)!;
  const matrices = matricesOf(tensors[0]!);
  const vectors = (length * columns) / walk.vectorLength;
  const threads = Math.min(maxThreads, Math.ceil(vectors / 32) * 32);
  const blocks = Math.ceil(vectors / threads);
  const variant = {
    ELEMENT: storageType(dtype),
    VECTOR_LENGTH: walk.vectorLength,
    OFFSET: offsetType(Math.max(matrices, length * columns)),
  };
  const [n0, n1, n2] = walk.lengths as [number, number, number];
  const [s0, s1, s2, s3] = walk.xStrides as [number, number, number, number];
  const [t0, t1, t2, t3] = walk.yStrides as [number, number, number, number];
  context.kernel(kernel(variant)).launch(
    [blocks, Math.min(Math.ceil(matrices / matricesTogether), maxGridY), tensors.length],
    threads,
    0,
    kernel.byName({
      x0: x.addresses[0]!,
      x1: x.addresses.at(-1)!,
      cosine: tableAddress(context, cosine!, walk),
      sine: tableAddress(context, sine!, walk),
      y0: y.addresses[0]!,
      y1: y.addresses.at(-1)!,
      n0,
      n1,
      n2,
      length,
      columns,
      s0,
      s1,
      s2,
      s3,
      t0,
      t1,
      t2,
      t3,
      sign: inverse ? -1 : 1,
    }),
  );
}

/**
 * Rotary position embedding (Su et al. 2021) of interleaved pairs: with (a, b) = (x[2i], x[2i+1]) and the angle
 * of position t and pair i, (a cos - b sin, a sin + b cos). x: [..., T, d]; cosine, sine: float32 [T, d/2]; the
 * result is contiguous, of x's shape and dtype. Throws a ShapeError or DTypeError.
 */
export function rope(x: Tensor, cosine: Tensor, sine: Tensor, ...rest: []): Tensor {
  refuseMore('rope', rest);
  return applyOne(ropeOp, [x, cosine, sine], { inverse: false });
}
