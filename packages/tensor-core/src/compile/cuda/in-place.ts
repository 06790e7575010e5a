import { sameShape } from '../../base/shape.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { usesOf } from '../passes/operands.ts';
import { type Branches, mayOverlap, oneChain } from './branches.ts';

/**
 * For storages that take over another's memory, the number of that other one: an element-wise call can write its results over
 * inputs that are not needed afterwards, element by element. Both storages are of one length; in each, several operands may
 * lie side by side, as the two projections of SwiGLU and their gradients do.
 */
export function takenOver(
  { calls, storages, kept }: Pick<Graph, 'calls' | 'storages' | 'kept'>,
  branches: Branches = oneChain,
): Map<number, number> {
  const uses = usesOf(calls);
  const placeOf = new Map(calls.map((call, place) => [call, place]));
  // A call beside this one may still read what it would overwrite.
  const mayRunBeside = (call: Call, other: Call) =>
    mayOverlap(branches, placeOf.get(call)!, placeOf.get(other)!);
  const isMade = (storage: number) => storages[storage]!.source.kind === 'made';
  const over = new Map<number, number>();
  for (const call of calls) {
    const { op, inputs, outputs } = call;
    if (op.cuda.kind !== 'pointwise') continue;
    const free = new Set(
      storagesOf(inputs).filter(
        (storage) =>
          isMade(storage) &&
          !kept.has(storage) &&
          uses.get(storage)!.at(-1) === call &&
          !uses.get(storage)!.some((user) => mayRunBeside(call, user)),
      ),
    );
    for (const storage of storagesOf(outputs)) {
      if (!isMade(storage) || uses.get(storage)![0] !== call) continue;
      const written = operandsIn(outputs, storage);
      const from = [...free].find(
        (other) =>
          storages[other]!.byteLength === storages[storage]!.byteLength &&
          // An input read in another layout may be read by another thread after it has been overwritten.
          operandsIn(inputs, other).every((input) => written.some((output) => liesAlike(input, output))),
      );
      if (from === undefined) continue;
      free.delete(from);
      over.set(storage, from);
    }
  }
  return over;
}

function storagesOf(operands: readonly Operand[]): number[] {
  return [...new Set(operands.map(({ storage }) => storage))];
}

function operandsIn(operands: readonly Operand[], storage: number): Operand[] {
  return operands.filter((operand) => operand.storage === storage);
}

/** Whether each element lies at the same place of its storage; a broadcast input has fewer of them. */
function liesAlike(a: Operand, b: Operand): boolean {
  if (a.dtype !== b.dtype || a.offset !== b.offset || a.size !== b.size) return false;
  // An input of as many elements as the results is not broadcast, and of their shape.
  return (a.isContiguous && b.isContiguous) || sameShape(a.strides, b.strides);
}
