import { type MatmulAttributes, matmulOp } from '../../../../ops/matrix/matmul.ts';
import type { Call, Operand, Program } from '../../../../program/program.ts';
import { byteSize } from '../../../../tensor/dtype.ts';
import { contiguousStrides, sizeOf } from '../../../../tensor/shape.ts';
import { expressionOf, isOp } from './accumulate-products.ts';
import {
  fillsMadeStorage,
  isWhole,
  joinedColumns,
  mayLieInRows,
  moved,
  stackedRows,
} from './joint-storage.ts';
import { areDisjoint, isSameOperand, usesOf } from './operands.ts';

/** How far behind a product its partners are looked for: rotations and casts lie between those of a layer. */
const farthest = 32;

/** A call of a program, and its place. */
export interface Placed {
  readonly call: Call;
  readonly at: number;
}

/** A program in which x · W₁ᵀ, x · W₂ᵀ ... of one x are x · [W₁; W₂; ...]ᵀ. */
export function mergeProjections(program: Program): Program {
  let merged = program;
  for (let at = 0; at < merged.calls.length; at++) {
    const projections = projectionsFrom(merged, at);
    if (projections.length > 1) merged = mergedAt(merged, projections) ?? merged;
  }
  return merged;
}

/** The projections of one activation, from the call at `at` on, as long as it stays what it is. */
function projectionsFrom({ calls }: Program, at: number): Placed[] {
  const first = calls[at]!;
  if (!isProjection(first)) return [];
  const found: Placed[] = [{ call: first, at }];
  const [x] = first.inputs as [Operand];
  const end = Math.min(calls.length, at + farthest);
  for (let i = at + 1; i < end; i++) {
    const call = calls[i]!;
    if (isProjection(call) && isAlike(call, first) && isSameOperand(call.inputs[0]!, x))
      found.push({ call, at: i });
    if (!call.outputs.every((output) => areDisjoint(output, x))) break;
  }
  return found;
}

/** A product of low precision with the transpose of a dense matrix. */
function isProjection(call: Call): boolean {
  if (!isLowProduct(call)) return false;
  const [, w] = call.inputs as [Operand, Operand];
  return (call.attributes as MatmulAttributes).transposeB === true && isDenseMatrix(w);
}

/** Whether a call is a matrix product of float16 or bfloat16 operands, the same in every run. */
export function isLowProduct({ op, inputs, outputs, live }: Call): boolean {
  return isOp(op, matmulOp) && live === null && byteSize(inputs[0]!.dtype) === 2 && outputs[0]!.size > 0;
}

export function isDenseMatrix({ shape, isContiguous }: Operand): boolean {
  return shape.length === 2 && isContiguous;
}

/** Whether two products differ in nothing but their operands and results. */
export function isAlike(a: Call, b: Call): boolean {
  const [one, other] = [a.attributes as MatmulAttributes, b.attributes as MatmulAttributes];
  const turns = (attributes: MatmulAttributes) => attributes.transposeB === true;
  return (
    one.scale === other.scale &&
    turns(one) === turns(other) &&
    a.inputs[0]!.dtype === b.inputs[0]!.dtype &&
    a.outputs[0]!.dtype === b.outputs[0]!.dtype
  );
}

/** The program with one product in the place of the first of `projections`; null if fewer than two can be joined. */
function mergedAt(program: Program, projections: readonly Placed[]): Program | null {
  const uses = usesOf(program.calls);
  const joinable = projections.filter(({ call }) => mayLieInRows(program, uses, call.outputs[0]!));
  const areStacked = liesStacked(joinable.map(({ call }) => call.inputs[1]!));
  if (areStacked && !mayMove(program, joinable, joinable[0]?.at ?? 0)) return null;
  const members = areStacked ? joinable : withOwnWeights(program, uses, joinable);
  if (members.length < 2) return null;
  const calls = members.map(({ call }) => call);
  const outputs = calls.map((call) => call.outputs[0]!);
  const weights = calls.map((call) => call.inputs[1]!);
  const storages = [...program.storages];
  const columns = joinedColumns(outputs, storages.length);
  storages.push(columns.storage);
  const moves = new Map(columns.moves);
  if (!areStacked) {
    const rows = stackedRows(weights, storages.length);
    storages.push(rows.storage);
    for (const [storage, move] of rows.moves) moves.set(storage, move);
  }
  const rest = areStacked ? program.calls : withMakersBefore(program.calls, members, weights);
  const movedCalls = moved(rest, moves);
  const first = rest.indexOf(calls[0]!);
  const [x, w] = movedCalls[first]!.inputs as [Operand, Operand];
  const [y] = outputs as [Operand];
  const n = weights.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const product: Call = {
    ...calls[0]!,
    inputs: [x, dense(w, [n, w.shape[1]!])],
    outputs: [dense({ ...y, storage: program.storages.length }, [...y.shape.slice(0, -1), n])],
  };
  const others = new Set(calls.slice(1));
  return {
    ...program,
    storages,
    calls: movedCalls.flatMap((call, i) => (i === first ? [product] : others.has(rest[i]!) ? [] : [call])),
  };
}

/** Whether dense matrices lie one behind the other in one storage. */
export function liesStacked(matrices: readonly Operand[]): boolean {
  return matrices.every((matrix, i) => {
    const before = matrices[i - 1];
    return !before || (before.storage === matrix.storage && before.offset + before.size === matrix.offset);
  });
}

/** Whether products have the same operands at `place` as where they are. */
export function mayMove({ calls }: Program, products: readonly Placed[], place: number): boolean {
  return products.every(({ call, at }) => {
    const operands = call.inputs.slice(0, 2);
    const between = calls.slice(Math.min(at, place), Math.max(at, place));
    return between.every(({ outputs }) =>
      outputs.every((output) => operands.every((operand) => areDisjoint(output, operand))),
    );
  });
}

/** A dense operand of another shape where `like` begins. */
export function dense(like: Operand, shape: readonly number[]): Operand {
  const size = sizeOf(shape);
  const strides = contiguousStrides(shape);
  return { ...like, shape, strides, size, byteLength: size * byteSize(like.dtype), isContiguous: true };
}

/** Those of different weights that are each all of a storage that one cast makes, which could stand before them all. */
function withOwnWeights(
  program: Program,
  uses: ReadonlyMap<number, readonly Call[]>,
  projections: readonly Placed[],
): Placed[] {
  const { calls } = program;
  const seen = new Set<number>();
  return projections.filter(({ call }) => {
    const [, w] = call.inputs as [Operand, Operand];
    if (seen.has(w.storage) || !fillsMadeStorage(program, w) || !isWhole(w)) return false;
    seen.add(w.storage);
    const [maker, ...others] = uses.get(w.storage)!;
    const isOnlyMaker = others.every(({ outputs }) => outputs.every(({ storage }) => storage !== w.storage));
    if (!isOnlyMaker || expressionOf(maker!) !== 'a' || maker!.op.mutates || maker!.live !== null)
      return false;
    const between = calls.slice(projections[0]!.at, calls.indexOf(maker!));
    return between.every(({ outputs }) => outputs.every((output) => areDisjoint(output, maker!.inputs[0]!)));
  });
}

/** The calls with what makes `weights` before the first of `members`. */
function withMakersBefore(
  calls: readonly Call[],
  members: readonly Placed[],
  weights: readonly Operand[],
): readonly Call[] {
  const { at } = members[0]!;
  const made = new Set(weights.map(({ storage }) => storage));
  const isMaker = ({ outputs }: Call) => outputs.some(({ storage }) => made.has(storage));
  const behind = calls.slice(at);
  return [...calls.slice(0, at), ...behind.filter(isMaker), ...behind.filter((call) => !isMaker(call))];
}
