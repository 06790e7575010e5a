import { alias } from '../../op/alias.ts';
import { applyView } from '../../op/apply.ts';
import { ShapeError } from '../../base/errors.ts';
import { type ViewOp, defineView } from '../../op/op.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import {
  type Layout,
  type Shape,
  broadcastStrides,
  checkList,
  checkShape,
  checkWhole,
  contiguousStrides,
  formatShape,
  isContiguous,
  normalizeDimension,
  sameShape,
  sizeOf,
} from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { contiguous } from '../copy/contiguous.ts';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { sliceBackward } from './slice-backward.ts';

interface PermuteAttributes {
  /** Output dimension i is input dimension order[i]. */
  readonly order: readonly number[];
}

const permuteView: ViewOp<PermuteAttributes> = defineView<PermuteAttributes>({
  name: 'permute',
  autocast: 'none',
  layout: ({ shape, strides, offset }, { order }) => ({
    shape: inOrder(shape, order),
    strides: inOrder(strides, order),
    offset,
  }),
  gradient: ({ gradients, attributes: { order } }) => {
    const inverse = new Array<number>(order.length);
    order.forEach((dim, i) => (inverse[dim] = i));
    return [applyView(permuteView, gradients[0]!, { order: inverse })];
  },
});

function inOrder(lengths: Shape, order: readonly number[]): number[] {
  const reordered = new Array<number>(order.length);
  for (let i = 0; i < order.length; i++) reordered[i] = lengths[order[i]!]!;
  return reordered;
}

/** Reorders dimensions: output dimension i is input dimension `order[i]`. A view. Throws a ShapeError. */
export function permute(x: Tensor, order: readonly number[], ...rest: []): Tensor {
  requireTensor('permute', x);
  refuseMore('permute', rest);
  checkList('permute', order);
  const normalized = order.map((dim) => normalizeDimension('permute', dim, x.rank));
  if (normalized.length !== x.rank || new Set(normalized).size !== x.rank) {
    throw new ShapeError(
      `permute: ${formatShape(order)} must name each dimension of ${formatShape(x.shape)} exactly once.`,
    );
  }
  return applyView(permuteView, x, { order: normalized });
}

/**
 * Swaps two dimensions; the last two by default. A view. A tensor without any accepts 0 and -1, as in PyTorch. Throws a
 * ShapeError.
 */
export function transpose(x: Tensor, dimension0 = -2, dimension1 = -1, ...rest: []): Tensor {
  requireTensor('transpose', x);
  refuseMore('transpose', rest);
  const rank = Math.max(1, x.rank);
  const from = normalizeDimension('transpose', dimension0, rank);
  const to = normalizeDimension('transpose', dimension1, rank);
  const order = new Array<number>(x.rank);
  for (let i = 0; i < order.length; i++) order[i] = i === from ? to : i === to ? from : i;
  return applyView(permuteView, x, { order });
}

interface ShapeAttributes {
  readonly shape: Shape;
}

const reshapeView = defineView<ShapeAttributes>({
  name: 'reshape',
  autocast: 'none',
  layout: (input, { shape }) => {
    const strides = stridesAfterReshape(input, shape);
    if (!strides) {
      throw new ShapeError(
        `view: ${formatShape(input.shape)} with strides ${formatShape(input.strides)} cannot be seen as ` +
          `${formatShape(shape)} without a copy; use reshape().`,
      );
    }
    return { shape, strides, offset: input.offset };
  },
  gradient: ({ gradients, inputSpecs }) => [reshape(gradients[0]!, inputSpecs[0]!.shape)],
});

/** Another shape of the same storage; one length may be -1. Throws a ShapeError if that needs a copy. */
export function view(x: Tensor, shape: Shape, ...rest: []): Tensor {
  refuseMore('view', rest);
  return applyView(reshapeView, x, { shape: inferLength('view', x, shape) });
}

/** Another shape of the same elements in row-major order; one length may be -1. Copies only if it must. Throws a ShapeError. */
export function reshape(x: Tensor, shape: Shape, ...rest: []): Tensor {
  refuseMore('reshape', rest);
  const full = inferLength('reshape', x, shape);
  if (sameShape(full, x.shape)) return alias(x);
  if (stridesAfterReshape(x, full)) return applyView(reshapeView, x, { shape: full });
  return scope(() => applyView(reshapeView, contiguous(x), { shape: full }));
}

function inferLength(op: string, x: Tensor, shape: Shape): Shape {
  requireTensor(op, x);
  checkList(op, shape);
  const known = shape.reduce((size, length) => (length === -1 ? size : size * length), 1);
  const unknown = shape.filter((length) => length === -1).length;
  const full = shape.map((length) => (length === -1 ? x.size / known : length));
  if (
    unknown > 1 ||
    full.some((length) => !Number.isInteger(length) || length < 0) ||
    sizeOf(full) !== x.size
  ) {
    throw new ShapeError(
      `${op}: ${formatShape(x.shape)} has ${x.size} elements and cannot take the shape ${formatShape(shape)}.`,
    );
  }
  return full;
}

/**
 * Strides of `shape` over `input` without a copy, or null. Input dimensions that are dense in one another form runs; each run
 * must be covered by whole output dimensions.
 */
function stridesAfterReshape(input: Layout, shape: Shape): number[] | null {
  if (isContiguous(input.shape, input.strides)) return contiguousStrides(shape);
  const dims = input.shape
    .map((length, i) => ({ length, stride: input.strides[i]! }))
    .filter((d) => d.length !== 1);
  const strides = new Array<number>(shape.length);
  let next = shape.length - 1;
  for (let i = dims.length - 1; i >= 0; i--) {
    const { stride } = dims[i]!;
    let run = dims[i]!.length;
    while (i > 0 && dims[i - 1]!.stride === stride * run) run *= dims[--i]!.length;
    let filled = 1;
    while (next >= 0 && (filled < run || shape[next] === 1)) {
      strides[next] = stride * filled;
      filled *= shape[next--]!;
    }
    if (filled !== run) return null;
  }
  for (; next >= 0; next--) strides[next] = 1;
  return strides;
}

const expandView = defineView<ShapeAttributes>({
  name: 'expand',
  autocast: 'none',
  layout: (input, { shape }) => ({
    shape,
    strides: broadcastStrides(input.shape, input.strides, shape),
    offset: input.offset,
  }),
  // The backward pass itself sums over the repeated dimensions.
  gradient: ({ gradients }) => gradients,
});

/** Repeats dimensions of length one, and new leading ones, without a copy. A length of -1 keeps its own. Throws a ShapeError. */
export function expand(x: Tensor, shape: Shape, ...rest: []): Tensor {
  requireTensor('expand', x);
  refuseMore('expand', rest);
  checkList('expand', shape);
  const lead = shape.length - x.rank;
  const full = shape.map((length, i) => (length === -1 ? (x.shape[i - lead] ?? -1) : length));
  checkShape('expand', full);
  if (lead < 0 || x.shape.some((length, i) => length !== 1 && length !== full[i + lead])) {
    throw new ShapeError(`expand: ${formatShape(x.shape)} does not broadcast to ${formatShape(shape)}.`);
  }
  return sameShape(full, x.shape) ? alias(x) : applyView(expandView, x, { shape: full });
}

export interface SliceAttributes {
  readonly dimension: number;
  readonly start: number;
  readonly step: number;
  readonly length: number;
}

const sliceView = defineView<SliceAttributes>({
  name: 'slice',
  autocast: 'none',
  layout: ({ shape, strides, offset }, { dimension, start, step, length }) => ({
    shape: shape.map((own, i) => (i === dimension ? length : own)),
    strides: strides.map((own, i) => (i === dimension ? own * step : own)),
    offset: offset + start * strides[dimension]!,
  }),
  gradient: ({ gradients, inputSpecs, attributes }) => [
    sliceBackward(gradients[0]!, inputSpecs[0]!.shape, attributes),
  ],
});

/**
 * Elements `start`, `start + step`... below `end` along one dimension, as Python's x[start:end:step]. A view. Throws a
 * ShapeError for arguments that are not whole, and for steps below 1.
 */
export function slice(x: Tensor, dimension: number, start = 0, end?: number, step = 1, ...rest: []): Tensor {
  requireTensor('slice', x);
  refuseMore('slice', rest);
  const dim = normalizeDimension('slice', dimension, x.rank);
  const whole = x.shape[dim]!;
  const last = end === undefined ? whole : end;
  checkWhole('slice', 'the start', start);
  checkWhole('slice', 'the end', last);
  if (!Number.isSafeInteger(step) || step < 1) {
    throw new ShapeError(`slice: the step must be a whole number of one or more, got ${String(step)}.`);
  }
  const clamp = (index: number) => Math.min(Math.max(index < 0 ? index + whole : index, 0), whole);
  const from = clamp(start);
  const length = Math.max(0, Math.ceil((clamp(last) - from) / step));
  return applyView(sliceView, x, { dimension: dim, start: from, step, length });
}

/** Removes one dimension by taking its element `index`. A view. Throws a ShapeError for an index outside of it. */
export function select(x: Tensor, dimension: number, index: number, ...rest: []): Tensor {
  requireTensor('select', x);
  refuseMore('select', rest);
  const dim = normalizeDimension('select', dimension, x.rank);
  const length = x.shape[dim]!;
  if (!Number.isInteger(index) || index < -length || index >= length) {
    throw new ShapeError(
      `select: index ${String(index)} is outside dimension ${dimension} of ${formatShape(x.shape)}.`,
    );
  }
  const at = index < 0 ? index + length : index;
  return scope(() => squeeze(slice(x, dim, at, at + 1), dim));
}

/**
 * Removes a dimension of length one, and keeps any other. A view. A scalar accepts dimensions 0 and -1. Throws a ShapeError.
 */
export function squeeze(x: Tensor, dimension: number, ...rest: []): Tensor {
  requireTensor('squeeze', x);
  refuseMore('squeeze', rest);
  const dim = normalizeDimension('squeeze', dimension, Math.max(1, x.rank));
  return view(
    x,
    x.shape.filter((length, i) => i !== dim || length !== 1),
  );
}

/** Inserts a dimension of length one. A view. Throws a ShapeError. */
export function unsqueeze(x: Tensor, dimension: number, ...rest: []): Tensor {
  requireTensor('unsqueeze', x);
  refuseMore('unsqueeze', rest);
  const dim = normalizeDimension('unsqueeze', dimension, x.rank + 1);
  return view(x, [...x.shape.slice(0, dim), 1, ...x.shape.slice(dim)]);
}
