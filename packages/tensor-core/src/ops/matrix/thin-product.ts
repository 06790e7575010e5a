import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { sumNode } from '../reduce/sum-graph.ts';
import { type Shape, sizeOf } from '../../base/shape.ts';

/**
 * From so many terms on, a thin product is summed in pieces. With fewer, OpenBLAS, which PyTorch uses, loses as many digits.
 */
const fewestTerms = 1024;
/** Terms of a piece, if ONNX Runtime adds them to one running sum, and if it adds a row's terms in lanes. */
const [chainLength, lanesLength] = [128, 4096];
/** Columns up to which it adds a thousand terms to one running sum. */
const fewColumns = 16;
/** With so few results operands may be copied; with more, a copy pays only from so many terms on. */
const [fewResults, manyTerms] = [1024, 8192];

/**
 * An operand and its layout: [...batch, lines, terms] if the terms of a line are `along` it, otherwise [...batch, terms,
 * lines].
 */
interface Operand {
  readonly value: OnnxValue;
  readonly batch: Shape;
  /** The number of rows of the first operand, or of columns of the second. */
  readonly lines: number;
  readonly terms: number;
  readonly along: boolean;
  /**
   * Whether pieces of several lines are read in place, lines first: ONNX Runtime permutes the batch dimensions if no operand
   * has more of them.
   */
  readonly linesFirst: boolean;
}

/**
 * A float32 product with few rows or columns, or null for one that ONNX Runtime sums accurately enough. It adds the terms of a
 * thin product to one running sum, which has five digits left after a million. Here pieces of the inner length are products of
 * their own, in a batch, whose results are summed pairwise; the operands stay in place. On two busy Emerald Rapids cores, in
 * μs (in one piece): a row by a column of 1,000,000 terms 230 (2,550), 1×65,536 · 65,536×64 180 (1,830), its transpose 340
 * (1,750), 1×4096 · 4096×768 110 (260), 256×1024 · 1024×16 64 (58), 4×1024 · 1024×4 10 (7).
 */
export function buildThinProduct(
  graph: OnnxGraph,
  a: OnnxValue,
  b: OnnxValue,
  scale: number,
  shape: Shape,
): OnnxValue | null {
  const terms = a.shape.at(a.transposed ? -2 : -1)!;
  if (terms < fewestTerms) return null;
  // All rows of a batch that are multiplied by one matrix form one matrix.
  const isJoined = !a.transposed && sizeOf(b.shape.slice(0, -2)) === 1;
  const batch = isJoined ? [] : shape.slice(0, -2);
  const [rows, columns] = [sizeOf(shape.slice(isJoined ? 0 : -2, -1)), shape.at(-1)!];
  const isFew = rows * columns <= fewResults;
  if (!isFew && rows > 1 && columns > fewColumns) return null;
  if (rows === 1 && columns === 1) return buildDotProducts(graph, a, b, scale, shape);
  const operand = (value: OnnxValue, lines: number, along: boolean): Operand => ({
    ...{ value, lines, terms, along, linesFirst: along && lines > 1 && batch.length === 0 },
    batch: isJoined ? [] : value.shape.slice(0, -2),
  });
  const left = operand(a, rows, rows === 1 || !a.transposed);
  const right = operand(b, columns, columns > 1 && b.transposed === true);
  const most = rows === 1 ? mostTerms(right) : columns === 1 ? mostTerms(left) : chainLength;
  if (terms < 2 * most) return null;
  const length = pieceLength(terms, most);
  const isCopied = length === null || isTurned(left) || isTurned(right);
  if (isCopied && !isFew && terms < manyTerms) return null;
  const product: Product = { graph, scale, shape: [...batch, rows, columns] };
  const sum =
    length === null ? sumOfUneven(product, left, right, most) : sumOfPieces(product, left, right, length);
  return shape.length > 2 && isJoined ? graph.reshape(sum, shape) : sum;
}

/**
 * The most terms of a piece of the matrix that a single row or column is multiplied by: its own lines may be added in lanes.
 */
function mostTerms(matrix: Operand): number {
  return matrix.along ? lanesLength : chainLength;
}

/** The longest equal pieces that are neither too long nor much too short; null if there are none. */
function pieceLength(terms: number, most: number): number | null {
  for (let length = most; length >= most / 8; length--) if (terms % length === 0) return length;
  return null;
}

/** One result for each matrix: the sum of the operands' element-wise product. */
function buildDotProducts(
  graph: OnnxGraph,
  a: OnnxValue,
  b: OnnxValue,
  scale: number,
  shape: Shape,
): OnnxValue {
  const terms = sizeOf(a.shape.slice(-2));
  const line = (x: OnnxValue) => graph.reshape(x, [...x.shape.slice(0, -2), terms]);
  const products = graph.node('Mul', [line(a), line(b)], {}, { shape: [...shape.slice(0, -2), terms] });
  const sums = sumNode(graph, products, [shape.length - 2], false);
  const scaled = scale === 1 ? sums : graph.node('Mul', [sums, graph.scalar(sums.dtype, scale)]);
  return graph.reshape(scaled, shape);
}

/** A product of both operands. */
interface Product {
  readonly graph: OnnxGraph;
  readonly scale: number;
  readonly shape: Shape;
}

/** The sum of pieces of one length, and of the rest. */
function sumOfUneven(product: Product, left: Operand, right: Operand, length: number): OnnxValue {
  const { terms } = left;
  const rest = terms % length;
  const part = (from: number, to: number, each: number) => {
    const [a, b] = [left, right].map((operand) => termsOf(product.graph, operand, from, to));
    return sumOfPieces(product, a!, b!, each);
  };
  return product.graph.node('Add', [part(0, terms - rest, length), part(terms - rest, terms, rest)]);
}

/** Terms `from` to `to` of each line, copied. */
function termsOf(graph: OnnxGraph, operand: Operand, from: number, to: number): Operand {
  const { value, batch, lines, terms, along } = operand;
  const lying = graph.reshape(value, [...batch, ...(along ? [lines, terms] : [terms, lines])]);
  const axis = batch.length + (along ? 1 : 0);
  const bounds = [from, to, axis].map((bound) => graph.integers([bound]));
  const shape = lying.shape.map((size, i) => (i === axis ? to - from : size));
  return { ...operand, terms: to - from, value: graph.node('Slice', [lying, ...bounds], {}, { shape }) };
}

function sumOfPieces(
  { graph, scale, shape }: Product,
  left: Operand,
  right: Operand,
  length: number,
): OnnxValue {
  const at = shape.length - 2;
  const attributes = {
    ...{ transA: Number(!left.along), transB: Number(right.along) },
    ...{ transBatchA: Number(left.linesFirst), transBatchB: Number(right.linesFirst), alpha: scale },
  };
  const options = {
    shape: [...shape.slice(0, at), left.terms / length, ...shape.slice(at)],
    domain: 'com.microsoft',
  };
  const operands = [piecesOf(graph, left, length), piecesOf(graph, right, length)];
  return sumNode(graph, graph.node('FusedMatMul', operands, attributes, options), [at], false);
}

/** Whether lines of several matrices would have to come first, which no operator reads: they are copied. */
function isTurned({ lines, along, linesFirst }: Operand): boolean {
  return along && lines > 1 && !linesFirst;
}

function piecesOf(graph: OnnxGraph, operand: Operand, length: number): OnnxValue {
  const { value, batch, lines, terms, along } = operand;
  const pieces = terms / length;
  if (!along) return graph.reshape(value, [...batch, pieces, length, lines]);
  if (lines === 1) return graph.reshape(value, [...batch, pieces, 1, length]);
  const byLine = graph.reshape(value, [...batch, lines, pieces, length]);
  if (!isTurned(operand)) return byLine;
  const at = batch.length;
  const perm = [...batch.keys(), at + 1, at, at + 2];
  return graph.node('Transpose', [byLine], { perm }, { shape: [...batch, pieces, lines, length] });
}
