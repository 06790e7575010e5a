import type { Call, Operand } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { sameShape } from '../../base/shape.ts';
import { extentOf } from '../../tensor/storage/extent.ts';

export function isSameOperand(a: Operand, b: Operand): boolean {
  return (
    a.storage === b.storage &&
    a.offset === b.offset &&
    a.dtype === b.dtype &&
    sameShape(a.shape, b.shape) &&
    sameShape(a.strides, b.strides)
  );
}

/** Whether two operands share no element, as far as is cheap to prove: false may be wrong, true is not. */
export function areDisjoint(a: Operand, b: Operand): boolean {
  if (a.storage !== b.storage) return true;
  const [first, second] = [extentOf(a), extentOf(b)];
  return first.end <= second.start || second.end <= first.start || areColumnsApart(a, b);
}

/** Whether both are disjoint blocks of columns of one matrix, such as parts of a joint projection. */
function areColumnsApart(a: Operand, b: Operand): boolean {
  if (a.dtype !== b.dtype) return false;
  const pitches = new Set([...a.strides, ...b.strides]);
  return [...pitches].some((pitch) => {
    const [first, second] = [columnsOf(a, pitch), columnsOf(b, pitch)];
    return first && second && (first.end <= second.start || second.end <= first.start);
  });
}

/** The columns that an operand covers in rows of `pitch` elements; null where it runs across the end of a row. */
function columnsOf(
  { shape, strides, offset }: Operand,
  pitch: number,
): { start: number; end: number } | null {
  if (pitch === 0) return null;
  const start = offset % pitch;
  let end = start + 1;
  for (const [i, stride] of strides.entries())
    if (stride % pitch !== 0 || stride === 0) end += (shape[i]! - 1) * stride;
  return end <= pitch ? { start, end } : null;
}

/** Whether none of the calls writes an element of the operands. */
export function leaveAsIs(calls: readonly Call[], operands: readonly Operand[]): boolean {
  return calls.every(({ outputs }) =>
    outputs.every((output) => operands.every((operand) => areDisjoint(output, operand))),
  );
}

/** Whether two calls may change places. */
export function areIndependent(a: Call, b: Call): boolean {
  if (hasEffects(a) && hasEffects(b)) return false;
  return leaveAsIs([a], [...b.inputs, ...b.outputs]) && leaveAsIs([b], [...a.inputs, ...a.outputs]);
}

/** By storage, the calls that read or write it, in their order. */
export function usesOf(calls: readonly Call[]): Map<number, Call[]> {
  const uses = new Map<number, Call[]>();
  for (const call of calls) {
    for (const storage of new Set([...call.inputs, ...call.outputs].map((operand) => operand.storage))) {
      const list = uses.get(storage);
      if (list) list.push(call);
      else uses.set(storage, [call]);
    }
  }
  return uses;
}

/** By storage, the place of the last call that reads it. */
export function lastReadsOf(calls: readonly Call[]): Map<number, number> {
  return new Map(calls.flatMap(({ inputs }, at) => inputs.map(({ storage }) => [storage, at] as const)));
}

/** The call on other storages, and so are the calls that were fused into it. */
export function withStorages(call: Call, moves: ReadonlyMap<number, number>): Call {
  const moved = (operand: Operand): Operand => {
    const to = moves.get(operand.storage);
    return to === undefined ? operand : { ...operand, storage: to };
  };
  return {
    ...call,
    inputs: call.inputs.map(moved),
    outputs: call.outputs.map(moved),
    ...(call.members && { members: call.members.map((member) => withStorages(member, moves)) }),
  };
}
