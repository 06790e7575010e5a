import { addmmInPlaceOp } from '../../ops/matrix/addmm.ts';
import { type MatmulAttributes, matmulOp } from '../../ops/matrix/matmul.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { byteSize } from '../../base/dtype.ts';
import { isContiguous, sizeOf } from '../../base/shape.ts';
import { membersOf } from './fused-ops.ts';
import { isOp } from './is-op.ts';
import {
  fillsIntermediate,
  fillsVectors,
  isMadeInRows,
  joinColumns,
  mayLieInRows,
  stackRows,
} from './joint-storage.ts';
import { dense, isAlike, isDenseMatrix, isLowProduct, liesStacked, mayMove } from './low-products.ts';
import { isSameOperand, leaveAsIs } from './operands.ts';
import { type Placed, type Rewrite, rewritten } from './rewrite.ts';

/** How many calls after a product its partners are looked for: attention's backward pass lies between those of one layer. */
const farthest = 96;

/**
 * Makes dY₁ · W₁ + dY₂ · W₂ + ... one product [dY₁ dY₂ ...] · [W₁; W₂; ...], where the weights follow one another in memory
 * and the gradients can be made side by side.
 */
export function mergeInputGradients(graph: Graph): Graph {
  return rewritten(graph, (rewrite, at) => {
    const sum = sumFrom(rewrite.graph, at);
    if (sum.length > 1) mergeTerms(rewrite, sum);
  });
}

/** Makes dY₁ᵀ · X, dY₂ᵀ · X ... one product [dY₁ dY₂ ...]ᵀ · X, where the gradients lie side by side. */
export function mergeWeightGradients(graph: Graph): Graph {
  return rewritten(graph, (rewrite, at) => {
    const gradients = weightGradientsFrom(rewrite.graph, at);
    if (gradients.length > 1) mergeGradients(rewrite, gradients);
  });
}

/** A product, and the products that are added to it before anything else uses the sum. */
function sumFrom({ calls }: Graph, at: number): Placed[] {
  const first = calls[at]!;
  if (!isLowProduct(first) || !isInputGradient(first)) return [];
  const [sum] = first.outputs as [Operand];
  const terms: Placed[] = [{ call: first, at }];
  const end = Math.min(calls.length, at + farthest);
  for (let i = at + 1; i < end; i++) {
    const call = calls[i]!;
    if (![...call.inputs, ...call.outputs].some(({ storage }) => storage === sum.storage)) continue;
    const adds = isOp(call.op, addmmInPlaceOp) && call.live === null && isSameOperand(call.outputs[0]!, sum);
    if (!adds || !isInputGradient(call) || !isAlike(call, first)) break;
    terms.push({ call, at: i });
  }
  return terms;
}

function isInputGradient({ inputs: [dy, w], attributes }: Call): boolean {
  return (attributes as MatmulAttributes).transposeB !== true && dy!.isContiguous && isDenseMatrix(w!);
}

/** Merges the terms of a sum whose gradients can be made side by side. */
function mergeTerms(rewrite: Rewrite, sum: readonly Placed[]): void {
  const { graph, uses } = rewrite;
  const able = sum
    .filter(({ call: { inputs } }) => mayLieInRows(graph, uses, inputs[0]!) && isMadeInRows(uses, inputs[0]!))
    .toSorted((a, b) => a.call.inputs[1]!.offset - b.call.inputs[1]!.offset);
  const terms = longestRun(able, (a, b) => liesStacked([a.call.inputs[1]!, b.call.inputs[1]!]));
  const last = Math.max(...terms.map(({ at }) => at));
  const gradients = terms.map(({ call }) => call.inputs[0]!);
  const areDistinct = new Set(gradients.map(({ storage }) => storage)).size === terms.length;
  if (terms.length < 2 || !areDistinct || !mayMove(graph, terms, last)) return;
  const calls = sum.map(({ call }) => call);
  if (!rewrite.isFree(calls, gradients)) return;
  joinColumns(rewrite, gradients);
  const product = mergedTerm(rewrite, terms);
  const merged = new Set(terms.map(({ at }) => at));
  // The sum begins with the first product that is left.
  const [begin] = sum.filter(({ at }) => at === last || !merged.has(at));
  for (const { call, at } of sum) {
    const own = at === last ? product : call;
    if (merged.has(at) && at !== last) rewrite.replace(call);
    else rewrite.replace(call, at === begin!.at ? firstTerm(own) : laterTerm(own));
  }
}

/** One product of the terms' gradients, side by side, and their weights, one after the other. */
function mergedTerm(rewrite: Rewrite, terms: readonly Placed[]): Call {
  const [{ call }] = terms as [Placed];
  const [dy, w] = call.inputs as [Operand, Operand];
  const k = terms.reduce((sum, { call: { inputs } }) => sum + inputs[1]!.shape[0]!, 0);
  const inOrder = terms.toSorted((a, b) => a.at - b.at);
  return {
    ...call,
    members: membersOf(inOrder.map((term) => term.call)),
    inputs: [withColumns(rewrite.moved(dy), k), dense(w, [k, w.shape[1]!]), ...call.outputs],
  };
}

/** `operand` widened or narrowed to so many columns. */
function withColumns(operand: Operand, columns: number): Operand {
  const shape = [...operand.shape.slice(0, -1), columns];
  const size = sizeOf(shape);
  const isDense = isContiguous(shape, operand.strides);
  return { ...operand, shape, size, byteLength: size * byteSize(operand.dtype), isContiguous: isDense };
}

function firstTerm(call: Call): Call {
  return { ...call, op: matmulOp as ComputeOp<never>, inputs: call.inputs.slice(0, 2) };
}

function laterTerm(call: Call): Call {
  const [a, b] = call.inputs as [Operand, Operand];
  return { ...call, op: addmmInPlaceOp as ComputeOp<never>, inputs: [a, b, call.outputs[0]!] };
}

/** The longest run of neighbours in a list of which each follows the one before. */
function longestRun<T>(list: readonly T[], follows: (a: T, b: T) => boolean): readonly T[] {
  let longest: readonly T[] = [];
  let start = 0;
  list.forEach((item, i) => {
    if (i > 0 && !follows(list[i - 1]!, item)) start = i;
    if (i + 1 - start > longest.length) longest = list.slice(start, i + 1);
  });
  return longest;
}

/** Gradients of weights that were multiplied with one activation, from the call at `at` on, until the activation is written. */
function weightGradientsFrom({ calls }: Graph, at: number): Placed[] {
  const first = calls[at]!;
  if (!isWeightGradient(first)) return [];
  const [dy, x] = first.inputs as [Operand, Operand];
  const found: Placed[] = [{ call: first, at }];
  const end = Math.min(calls.length, at + farthest);
  for (let i = at + 1; i < end; i++) {
    const call = calls[i]!;
    const isPartner =
      isWeightGradient(call) &&
      isAlike(call, first) &&
      isSameOperand(call.inputs[1]!, x) &&
      call.inputs[0]!.storage === dy.storage;
    if (isPartner) found.push({ call, at: i });
    if (!leaveAsIs([call], [x])) break;
  }
  return found;
}

/** dYᵀ · X, where dY may be a block of columns. */
export function isWeightGradient(call: Call): boolean {
  if (!isLowProduct(call)) return false;
  const [dy, x] = call.inputs as [Operand, Operand];
  return (
    (call.attributes as MatmulAttributes).transposeB !== true &&
    [dy, x].every(({ shape }) => shape.length === 2) &&
    dy.strides[0] === 1 &&
    dy.strides[1]! >= dy.shape[0]!
  );
}

/** Merges those whose operands lie side by side, in place of the last of them. */
function mergeGradients(rewrite: Rewrite, found: readonly Placed[]): void {
  const able = found
    .filter(({ call }) => mayBeStacked(rewrite, call))
    .toSorted((a, b) => a.call.inputs[0]!.offset - b.call.inputs[0]!.offset);
  const members = longestRun(able, ({ call: a }, { call: b }) => isBeside(a.inputs[0]!, b.inputs[0]!));
  const last = Math.max(...members.map(({ at }) => at));
  if (members.length < 2 || !mayMove(rewrite.graph, members, last)) return;
  const outputs = members.map(({ call }) => call.outputs[0]!);
  const isReadBefore = outputs.some(({ storage }) => {
    const reader = rewrite.uses.get(storage)![1];
    return reader !== undefined && rewrite.placeOf(reader) < last;
  });
  const calls = members.map(({ call }) => call);
  if (isReadBefore || !rewrite.isFree(calls, outputs)) return;
  stackRows(rewrite, outputs);
  const [first] = calls as [Call];
  const [dy, x] = first.inputs as [Operand, Operand];
  const d = rewrite.moved(first.outputs[0]!);
  const n = outputs.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const size = n * dy.shape[1]!;
  const joint = { ...dy, shape: [n, dy.shape[1]!], size, byteLength: size * byteSize(dy.dtype) };
  const product = {
    ...first,
    inputs: [joint, x],
    outputs: [dense(d, [n, d.shape[1]!])],
    members: membersOf(calls),
  };
  for (const { call, at } of members) {
    if (at === last) rewrite.replace(call, product);
    else rewrite.replace(call);
  }
}

/** Whether a gradient fills an intermediate storage that its product is the first to use, so that it may become part of another. */
function mayBeStacked({ graph, uses }: Rewrite, call: Call): boolean {
  const [output] = call.outputs as [Operand];
  return fillsIntermediate(graph, output) && fillsVectors(output) && uses.get(output.storage)![0] === call;
}

/** Whether the columns of `b`, both transposed, begin where those of `a` end. */
function isBeside(a: Operand, b: Operand): boolean {
  return a.strides[1] === b.strides[1] && b.offset === a.offset + a.shape[0]!;
}
