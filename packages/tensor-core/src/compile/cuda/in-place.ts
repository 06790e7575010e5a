import type { Operand, Program } from '../graph/graph.ts';
import { usesOf } from '../passes/operands.ts';

/**
 * Storages whose memory others take over, by the numbers of the latter: an element-wise call can write its result where it
 * reads an input that nobody needs behind it, element by element. Both are all of their storages, of one dtype.
 */
export function takenOver({
  calls,
  storages,
  kept,
}: Pick<Program, 'calls' | 'storages' | 'kept'>): Map<number, number> {
  const uses = usesOf(calls);
  const isWhole = ({ storage, isContiguous, byteLength }: Operand) =>
    storages[storage]!.source.kind === 'made' &&
    isContiguous &&
    byteLength > 0 &&
    byteLength === storages[storage]!.byteLength;
  const over = new Map<number, number>();
  for (const call of calls) {
    const { op, inputs, outputs } = call;
    if (op.cuda.kind !== 'pointwise') continue;
    // What is read twice may be read by another thread, in another layout, once it is overwritten.
    const isReadOnce = ({ storage }: Operand) =>
      inputs.filter((other) => other.storage === storage).length === 1;
    const free = new Set(
      inputs.filter(
        (x) => isWhole(x) && isReadOnce(x) && !kept.has(x.storage) && uses.get(x.storage)!.at(-1) === call,
      ),
    );
    for (const output of outputs) {
      if (!isWhole(output) || uses.get(output.storage)![0] !== call) continue;
      // As many elements: an input that is broadcast has fewer.
      const input = [...free].find((x) => x.dtype === output.dtype && x.size === output.size);
      if (!input) continue;
      free.delete(input);
      over.set(output.storage, input.storage);
    }
  }
  return over;
}
