import { addmmInPlaceOp } from '../../../../ops/matrix/addmm.ts';
import { type MatmulAttributes, matmulOp } from '../../../../ops/matrix/matmul.ts';
import type { ComputeOp } from '../../../../op/op.ts';
import type { Call, Operand, Program } from '../../../../program/program.ts';
import { byteSize } from '../../../../tensor/dtype.ts';
import { isContiguous, sizeOf } from '../../../../tensor/shape.ts';
import { isOp } from './accumulate-products.ts';
import {
  fillsMadeStorage,
  isMadeInRows,
  isWhole,
  joinedColumns,
  mayLieInRows,
  moved,
  stackedRows,
} from './joint-storage.ts';
import {
  type Placed,
  dense,
  isAlike,
  isDenseMatrix,
  isLowProduct,
  liesStacked,
  mayMove,
} from './merge-projections.ts';
import { areDisjoint, isSameOperand, usesOf } from './operands.ts';

/** How far behind a product its partners are looked for: the backward pass of attention lies between those of a layer. */
const farthest = 96;

/**
 * A program in which dY₁ · W₁ + dY₂ · W₂ + ... is [dY₁ dY₂ ...] · [W₁; W₂; ...], where the weights lie one behind the other
 * and the gradients can be made side by side.
 */
export function mergeInputGradients(program: Program): Program {
  let merged = program;
  for (let at = 0; at < merged.calls.length; at++) {
    const sum = sumFrom(merged, at);
    if (sum.length > 1) merged = withMergedSum(merged, sum) ?? merged;
  }
  return merged;
}

/** A program in which dY₁ᵀ · X, dY₂ᵀ · X ... are [dY₁ dY₂ ...]ᵀ · X, where the gradients lie side by side. */
export function mergeWeightGradients(program: Program): Program {
  let merged = program;
  for (let at = 0; at < merged.calls.length; at++) {
    const gradients = weightGradientsFrom(merged, at);
    if (gradients.length > 1) merged = withMergedGradients(merged, gradients) ?? merged;
  }
  return merged;
}

/** A product, and the products that are added to it before anybody reads the sum. */
function sumFrom({ calls }: Program, at: number): Placed[] {
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

function withMergedSum(program: Program, sum: readonly Placed[]): Program | null {
  const uses = usesOf(program.calls);
  const able = sum
    .filter(
      ({ call: { inputs } }) => mayLieInRows(program, uses, inputs[0]!) && isMadeInRows(uses, inputs[0]!),
    )
    .toSorted((a, b) => a.call.inputs[1]!.offset - b.call.inputs[1]!.offset);
  const terms = longestRun(able, (a, b) => liesStacked([a.call.inputs[1]!, b.call.inputs[1]!]));
  const inOrder = terms.toSorted((a, b) => a.at - b.at);
  const gradients = terms.map(({ call }) => call.inputs[0]!);
  const areDistinct = new Set(gradients.map(({ storage }) => storage)).size === terms.length;
  if (terms.length < 2 || !areDistinct || !mayMove(program, inOrder, inOrder.at(-1)!.at)) return null;
  const columns = joinedColumns(gradients, program.storages.length);
  const calls = moved(program.calls, columns.moves);
  const product = mergedTerm(calls, terms);
  // The sum begins with the first product that is left.
  const last = inOrder.at(-1)!.at;
  const replaced = new Set(inOrder.map(({ at }) => at));
  const kept = sum.map(({ at }) => at).filter((at) => at === last || !replaced.has(at));
  const placed = calls.map((call, at) => {
    if (!kept.includes(at)) return replaced.has(at) ? [] : [call];
    const own = at === last ? product : call;
    return [at === kept[0] ? firstTerm(own) : laterTerm(own)];
  });
  return { ...program, storages: [...program.storages, columns.storage], calls: placed.flat() };
}

/** One product of the terms' gradients, side by side, and of their weights, one behind the other. */
function mergedTerm(calls: readonly Call[], terms: readonly Placed[]): Call {
  const [first] = terms as [Placed];
  const [dy, w] = calls[first.at]!.inputs as [Operand, Operand];
  const k = terms.reduce((sum, { call }) => sum + call.inputs[1]!.shape[0]!, 0);
  const joint = withColumns(dy, k);
  return { ...first.call, inputs: [joint, dense(w, [k, w.shape[1]!]), ...first.call.outputs] };
}

/** `operand` with so many columns, from its first on. */
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

/** The most neighbours in a list that follow one another. */
function longestRun<T>(list: readonly T[], follows: (a: T, b: T) => boolean): readonly T[] {
  let longest: readonly T[] = [];
  let start = 0;
  list.forEach((item, i) => {
    if (i > 0 && !follows(list[i - 1]!, item)) start = i;
    if (i + 1 - start > longest.length) longest = list.slice(start, i + 1);
  });
  return longest;
}

/** Gradients of weights that were multiplied with one activation, from the call at `at` on, as long as it stays what it is. */
function weightGradientsFrom({ calls }: Program, at: number): Placed[] {
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
    if (!call.outputs.every((output) => areDisjoint(output, x))) break;
  }
  return found;
}

/** dYᵀ · X, of a dY whose rows may be apart. */
function isWeightGradient(call: Call): boolean {
  if (!isLowProduct(call)) return false;
  const [dy, x] = call.inputs as [Operand, Operand];
  return (
    (call.attributes as MatmulAttributes).transposeB !== true &&
    [dy, x].every(({ shape }) => shape.length === 2) &&
    dy.strides[0] === 1 &&
    dy.strides[1]! >= dy.shape[0]!
  );
}

function withMergedGradients(program: Program, found: readonly Placed[]): Program | null {
  const uses = usesOf(program.calls);
  const able = found
    .filter(({ call }) => mayBeStacked(program, uses, call))
    .toSorted((a, b) => a.call.inputs[0]!.offset - b.call.inputs[0]!.offset);
  const members = longestRun(able, ({ call: a }, { call: b }) => isBeside(a.inputs[0]!, b.inputs[0]!));
  const inOrder = members.toSorted((a, b) => a.at - b.at);
  if (members.length < 2 || !mayMove(program, inOrder, inOrder.at(-1)!.at)) return null;
  const last = inOrder.at(-1)!.at;
  const outputs = members.map(({ call }) => call.outputs[0]!);
  const storages = new Set(outputs.map(({ storage }) => storage));
  const areUnused = program.calls
    .slice(0, last)
    .every((call) => call.inputs.every(({ storage }) => !storages.has(storage)));
  if (!areUnused) return null;
  const rows = stackedRows(outputs, program.storages.length);
  const calls = moved(program.calls, rows.moves);
  const [first] = members as [Placed];
  const { inputs, outputs: placed } = calls[first.at]!;
  const n = outputs.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const [dy, x] = inputs as [Operand, Operand];
  const size = n * dy.shape[1]!;
  const joint = { ...dy, shape: [n, dy.shape[1]!], size, byteLength: size * byteSize(dy.dtype) };
  const product: Call = {
    ...first.call,
    inputs: [joint, x],
    outputs: [dense(placed[0]!, [n, placed[0]!.shape[1]!])],
  };
  const replaced = new Set(members.map(({ at }) => at));
  return {
    ...program,
    storages: [...program.storages, rows.storage],
    calls: calls.flatMap((call, at) => (at === last ? [product] : replaced.has(at) ? [] : [call])),
  };
}

/** Whether a gradient fills a storage that its product alone writes first, so that it may be a part of another one. */
function mayBeStacked(program: Program, uses: ReadonlyMap<number, readonly Call[]>, call: Call): boolean {
  const [output] = call.outputs as [Operand];
  return fillsMadeStorage(program, output) && isWhole(output) && uses.get(output.storage)![0] === call;
}

/** Whether the columns of `b`, both transposed, begin where those of `a` end. */
function isBeside(a: Operand, b: Operand): boolean {
  return a.strides[1] === b.strides[1] && a.offset + a.shape[0]! === b.offset;
}
