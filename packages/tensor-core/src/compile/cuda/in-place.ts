import type { Call, Operand, Graph } from '../graph/graph.ts';
import { usesOf } from '../passes/operands.ts';
import { type Branches, mayOverlap, oneChain } from './branches.ts';

/**
 * For storages that take over another's memory, the number of that other one: an element-wise call can write its result over
 * an input that is not needed afterwards, element by element. Both fill their storages and have one dtype.
 */
export function takenOver(
  { calls, storages, kept }: Pick<Graph, 'calls' | 'storages' | 'kept'>,
  branches: Branches = oneChain,
): Map<number, number> {
  const uses = usesOf(calls);
  const placeOf = new Map(calls.map((call, place) => [call, place]));
  // A call beside this one may still read what it would overwrite.
  const mayRunBeside = (call: Call, other: Call) =>
    other !== call && mayOverlap(branches, placeOf.get(call)!, placeOf.get(other)!);
  const isWhole = ({ storage, isContiguous, byteLength }: Operand) =>
    storages[storage]!.source.kind === 'made' &&
    isContiguous &&
    byteLength > 0 &&
    byteLength === storages[storage]!.byteLength;
  const over = new Map<number, number>();
  for (const call of calls) {
    const { op, inputs, outputs } = call;
    if (op.cuda.kind !== 'pointwise') continue;
    // An input read twice, in another layout, may be read by another thread after it has been overwritten.
    const isReadOnce = ({ storage }: Operand) =>
      inputs.filter((other) => other.storage === storage).length === 1;
    const free = new Set(
      inputs.filter(
        (x) =>
          isWhole(x) &&
          isReadOnce(x) &&
          !kept.has(x.storage) &&
          uses.get(x.storage)!.at(-1) === call &&
          !uses.get(x.storage)!.some((user) => mayRunBeside(call, user)),
      ),
    );
    for (const output of outputs) {
      if (!isWhole(output) || uses.get(output.storage)![0] !== call) continue;
      // A broadcast input has fewer elements.
      const input = [...free].find((x) => x.dtype === output.dtype && x.size === output.size);
      if (!input) continue;
      free.delete(input);
      over.set(output.storage, input.storage);
    }
  }
  return over;
}
