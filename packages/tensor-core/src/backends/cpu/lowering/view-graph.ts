import type { OnnxGraph, OnnxValue } from '../../../onnx/graph.ts';
import {
  type Layout,
  type Shape,
  contiguousStrides,
  isContiguous,
  sameShape,
  sizeOf,
} from '../../../base/shape.ts';

/**
 * How to read a strided layout out of dense memory by ONNX nodes: the memory from element `start` on is seen
 * as a dense tensor of shape `box`, then sliced, permuted, reshaped, and repeated.
 */
export interface ViewPlan {
  /** In elements from the start of the storage. */
  readonly start: number;
  readonly box: Shape;
  /** The part of each dimension of the box that belongs to the view: `from` (inclusive) to `to`. */
  readonly from: Shape;
  readonly to: Shape;
  readonly permutation: readonly number[];
  /** The view before repetition: its dimensions of stride 0 have length 1. */
  readonly unrepeated: Shape;
  readonly shape: Shape;
}

/** A dimension of a view that is walked: longer than 1, with a stride above 0. */
interface Walk {
  readonly dimension: number;
  readonly length: number;
  readonly stride: number;
}

/**
 * Plans how to read `layout` from a storage of `storageSize` elements. Null if its strides do not divide one another, or
 * elements overlap: no reshape of the memory then has the view's dimensions.
 */
export function planView(layout: Layout, storageSize: number): ViewPlan | null {
  const { shape, strides, offset } = layout;
  const unrepeated = shape.map((length, i) => (strides[i] === 0 && length > 0 ? 1 : length));
  if (sizeOf(shape) === 0 || isContiguous(unrepeated, strides)) {
    return densePlan(offset, unrepeated, shape);
  }
  const walks = shape
    .map((length, dimension) => ({ dimension, length, stride: strides[dimension]! }))
    .filter(({ length, stride }) => length > 1 && stride > 0)
    .sort((a, b) => b.stride - a.stride);
  const inner = innerLengths(walks);
  if (!inner) return null;
  const placed = placeBox(walks, inner, offset, storageSize);
  if (!placed) return null;
  const inMemoryOrder = walks.map(({ dimension }) => dimension);
  const inViewOrder = inMemoryOrder.toSorted((a, b) => a - b);
  const permutation = inViewOrder.map((dimension) => inMemoryOrder.indexOf(dimension));
  // The innermost step is a dimension of the box that the view sees one element of.
  if (placed.box.length > walks.length) permutation.push(walks.length);
  return { ...placed, permutation, unrepeated, shape };
}

/** Adds the nodes that read a view from `box`, the memory as the plan sees it. */
export function buildView(
  graph: OnnxGraph,
  box: OnnxValue,
  plan: ViewPlan,
  options = { repeat: true },
): OnnxValue {
  let value = sliceBox(graph, box, plan);
  if (plan.permutation.some((source, i) => source !== i)) {
    const shape = plan.permutation.map((source) => value.shape[source]!);
    value = graph.node('Transpose', [value], { perm: plan.permutation }, { shape });
  }
  if (!sameShape(value.shape, plan.unrepeated)) value = graph.reshape(value, plan.unrepeated);
  if (!options.repeat || sameShape(plan.unrepeated, plan.shape)) return value;
  return graph.node('Expand', [value, graph.integers(plan.shape)], {}, { shape: plan.shape });
}

function densePlan(start: number, unrepeated: Shape, shape: Shape): ViewPlan {
  const all = { box: unrepeated, from: unrepeated.map(() => 0), to: unrepeated };
  return { start, ...all, permutation: unrepeated.map((_, i) => i), unrepeated, shape };
}

/** How many elements of each walked dimension lie within one step of the dimension before; null if steps do not divide. */
function innerLengths(walks: readonly Walk[]): number[] | null {
  const lengths: number[] = [];
  for (let i = 1; i < walks.length; i++) {
    const length = walks[i - 1]!.stride / walks[i]!.stride;
    if (!Number.isInteger(length) || walks[i]!.length > length) return null;
    lengths.push(length);
  }
  lengths.push(walks.at(-1)!.stride);
  return lengths;
}

/**
 * Places a box of whole steps that contains the view: at a multiple of the outermost step from the start of the storage, as
 * for a slice of a tensor that fills it; otherwise as late as possible.
 */
function placeBox(walks: readonly Walk[], inner: readonly number[], offset: number, storageSize: number) {
  const step = walks[0]!.stride;
  const last = inner.at(-1) === 1 ? inner.slice(0, -1) : inner;
  const outer = walks[0]!.length;
  const latest = Math.min(offset, storageSize - outer * step);
  for (const start of [offset - (offset % step), latest]) {
    if (start < 0 || start > latest || offset - start >= step) continue;
    const box = [outer, ...last];
    const from = coordinates(offset - start, box);
    const to = from.map((first, i) => first + (walks[i]?.length ?? 1));
    if (to.every((end, i) => end <= box[i]!)) return { start, box, from, to };
  }
  return null;
}

function coordinates(index: number, shape: Shape): number[] {
  return contiguousStrides(shape).map((stride, i) => Math.floor(index / stride) % shape[i]!);
}

function sliceBox(graph: OnnxGraph, box: OnnxValue, { from, to }: ViewPlan): OnnxValue {
  const axes = box.shape.map((_, i) => i).filter((i) => from[i] !== 0 || to[i] !== box.shape[i]);
  if (axes.length === 0) return box;
  const starts = graph.integers(axes.map((i) => from[i]!));
  const ends = graph.integers(axes.map((i) => to[i]!));
  const shape = box.shape.map((_, i) => to[i]! - from[i]!);
  return graph.node('Slice', [box, starts, ends, graph.integers(axes)], {}, { shape });
}
