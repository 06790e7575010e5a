import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { isFloatingPoint } from '../../base/dtype.ts';
import { type Shape, sameShape, sizeOf } from '../../base/shape.ts';

// ONNX Runtime adds along the last dimension in eight lanes of a register, and along others in one.
const lanes = 8;
/** The most additions, one after another, into one running sum. */
const longestChain = 64;
/** Below so many elements in a row it pays to fold rows together. */
const wideRow = 64;
/** Up to so many elements one ReduceSum is fast enough, whatever their order. */
const smallSize = 4096;

/**
 * The sum of `x` over `dims` (ascending, from the front), which are kept with length 1 if `keepDims`. ReduceSum alone would
 * add a million elements one after another, which leaves four digits in float32; here pieces are summed, then their sums, so
 * that no chain of additions is longer than 64 and the error grows with the logarithm of the length, as in pairwise summation
 * (Higham 1993). Memory is still read only once. Integers wrap around.
 */
export function sumNode(
  graph: OnnxGraph,
  x: OnnxValue,
  dims: readonly number[],
  keepDims: boolean,
): OnnxValue {
  const shape = foldedShape(x.shape, dims, keepDims);
  // To ReduceSum no dimensions would mean all.
  if (dims.length === 0) return x;
  const runs = mergeDimensions(x.shape, dims);
  if (sizeOf(x.shape) === 0 || (isFloatingPoint(x.dtype) && isQuick(runs))) {
    return graph.node('ReduceSum', [x, graph.integers(dims)], { keepdims: keepDims ? 1 : 0 }, { shape });
  }
  let value = x;
  for (const { folded, outer, length, inner } of runs.toReversed()) {
    if (folded) value = foldMiddle(graph, inShape(graph, value, [outer, length, inner]));
  }
  return inShape(graph, value, shape);
}

function foldedShape(shape: Shape, dims: readonly number[], keepDims: boolean): Shape {
  return keepDims
    ? shape.map((length, i) => (dims.includes(i) ? 1 : length))
    : shape.filter((_, i) => !dims.includes(i));
}

function inShape(graph: OnnxGraph, x: OnnxValue, shape: Shape): OnnxValue {
  return sameShape(x.shape, shape) ? x : graph.reshape(x, shape);
}

/** Neighbouring dimensions that are all folded, or all kept, as one; with what surrounds it when it is folded. */
interface Run {
  readonly folded: boolean;
  readonly length: number;
  readonly outer: number;
  readonly inner: number;
}

function mergeDimensions(shape: Shape, dims: readonly number[]): Run[] {
  const merged: { folded: boolean; length: number }[] = [];
  shape.forEach((length, i) => {
    const folded = dims.includes(i);
    const last = merged.at(-1);
    if (length === 1) return;
    if (last?.folded === folded) last.length *= length;
    else merged.push({ folded, length });
  });
  // From the last to the first: inner dimensions have been folded by then, outer ones have not.
  return merged.map(({ folded, length }, i) => ({
    folded,
    length,
    outer: sizeOf(merged.slice(0, i).map((run) => run.length)),
    inner: sizeOf(merged.slice(i + 1).map((run) => (run.folded ? 1 : run.length))),
  }));
}

/** Whether one ReduceSum will do. Long columns of a single matrix it would fold by walking down each of them. */
function isQuick(runs: readonly Run[]): boolean {
  const folded = runs.filter((run) => run.folded);
  const chain = sizeOf(folded.map(({ length }) => length));
  return chain <= longestChain && folded.every(({ outer, inner }) => outer > 1 || chain * inner <= smallSize);
}

/** [outer, length, inner] folded to [outer, inner]. */
function foldMiddle(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const [outer, length, inner] = x.shape as [number, number, number];
  if (length <= longestChain * (inner === 1 ? lanes : 1)) return foldOnce(graph, x);
  const piece = pieceLength(length, inner);
  if (length % piece !== 0) return foldHeadAndTail(graph, x, piece);
  const pieces = length / piece;
  if (inner > 1 && inner < wideRow) {
    // First neighbouring rows, as wider rows; then each of those.
    const wide = foldMiddle(graph, inShape(graph, x, [outer, pieces, piece * inner]));
    return foldMiddle(graph, inShape(graph, wide, [outer, piece, inner]));
  }
  const sums = foldOnce(graph, inShape(graph, x, [outer * pieces, piece, inner]));
  return foldMiddle(graph, inShape(graph, sums, [outer, pieces, inner]));
}

/** A length of pieces that suits the processor; one that divides `length`, if there is one close to it. */
function pieceLength(length: number, inner: number): number {
  const most = inner === 1 ? 256 : inner < wideRow ? Math.min(longestChain, Math.ceil(256 / inner)) : 32;
  for (let piece = most; piece >= most / 4; piece--) if (length % piece === 0) return piece;
  return most;
}

/** As many whole pieces as there are, and the rest separately. */
function foldHeadAndTail(graph: OnnxGraph, x: OnnxValue, piece: number): OnnxValue {
  const [outer, length, inner] = x.shape as [number, number, number];
  const cut = length - (length % piece);
  const part = (from: number, to: number) =>
    graph.node(
      'Slice',
      [x, ...[from, to, 1].map((bound) => graph.integers([bound]))],
      {},
      { shape: [outer, to - from, inner] },
    );
  return graph.node('Add', [foldMiddle(graph, part(0, cut)), foldMiddle(graph, part(cut, length))]);
}

/**
 * Folds in one node: along rows in the lanes of ReduceSum; otherwise, for several columns at a time, as a product with ones.
 */
function foldOnce(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const [outer, length, inner] = x.shape as [number, number, number];
  // ReduceSum adds integers in float64, which rounds them above 2⁵³; products keep all their bits.
  if (!isFloatingPoint(x.dtype) || (outer === 1 && inner > 1)) return foldByProduct(graph, x);
  // With a last dimension of length 1 ReduceSum would not notice that it folds along rows.
  const rows = inner === 1 ? inShape(graph, x, [outer, length]) : x;
  const shape = inner === 1 ? [outer] : [outer, inner];
  const sums = graph.node('ReduceSum', [rows, graph.integers([1])], { keepdims: 0 }, { shape });
  return inShape(graph, sums, [outer, inner]);
}

function foldByProduct(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const [outer, length, inner] = x.shape as [number, number, number];
  const list = Array.from({ length }, () => 1);
  if (inner === 1) {
    const ones = graph.constant(x.dtype, [length, 1], list);
    return graph.node('MatMul', [inShape(graph, x, [outer, length]), ones], {}, { shape: [outer, 1] });
  }
  const ones = graph.constant(x.dtype, [1, length], list);
  const sums = graph.node('MatMul', [ones, x], {}, { shape: [outer, 1, inner] });
  return inShape(graph, sums, [outer, inner]);
}
