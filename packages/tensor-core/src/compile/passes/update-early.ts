import type { CudaProperties } from '@roofline/cuda';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { areIndependent } from './operands.ts';
import {
  type TensorUpdate,
  type Update,
  hoistCoefficients,
  partialUpdate,
  updateOf,
  updatedBy,
} from './partial-update.ts';
import { Rewrite } from './rewrite.ts';

/** A tensor that can be updated before the call that does it. */
interface EarlyTensor {
  readonly tensor: TensorUpdate;
  /** The place of the last call that must precede its update. */
  readonly readyAfter: number;
  /** Bytes of intermediates that are last used by the update. */
  readonly freedBytes: number;
}

/**
 * Lets optimizers update a tensor as soon as its gradient is final and nothing reads the old tensor any more, so that not all
 * gradients are in memory at once. Updates are grouped until their gradients take half of the GPU's L2 cache, where the update
 * finds them. Results are the same bits. Gradients that are first read together, as by clipping or a scaler, still exist
 * together.
 */
export function updateEarly(graph: Graph, { l2Bytes }: Pick<CudaProperties, 'l2Bytes'>): Graph {
  const rewrite = new Rewrite(graph);
  const updatesAfter = new Map<number, Call[]>();
  for (const call of graph.calls) {
    const update = updateOf(call);
    const groups = update ? groupsOf(earlyTensors(rewrite, call, update), l2Bytes / 2) : [];
    if (groups.length === 0) continue;
    const numbers = { coefficients: hoistCoefficients(rewrite, update!), factor: null };
    const early = new Set(groups.flat().map(({ tensor }) => tensor));
    const rest = update!.tensors.filter((tensor) => !early.has(tensor));
    rewrite.replace(call, ...(rest.length > 0 ? [partialUpdate(update!, rest, numbers)] : []));
    for (const group of groups) {
      const place = group.at(-1)!.readyAfter;
      const tensors = group.map(({ tensor }) => tensor);
      updatesAfter.set(place, [...(updatesAfter.get(place) ?? []), partialUpdate(update!, tensors, numbers)]);
    }
  }
  for (const [place, parts] of updatesAfter) rewrite.addAfter(graph.calls[place]!, parts);
  return rewrite.finish();
}

/** The tensors whose early update frees memory, in the order in which they are ready. */
function earlyTensors(rewrite: Rewrite, call: Call, update: Update): EarlyTensor[] {
  const at = rewrite.placeOf(call);
  return update.tensors
    .map((tensor) => {
      const { inputs, outputs, copy } = tensor;
      const freed = updatedBy(update, tensor).filter((operand) => isFreedAfter(rewrite, operand, call));
      const part = {
        ...call,
        inputs: [...inputs, ...update.shared],
        outputs: copy ? [...outputs, copy] : outputs,
      };
      return {
        tensor,
        readyAfter: lastConflict(rewrite, part, at),
        freedBytes: freed.reduce((sum, { byteLength }) => sum + byteLength, 0),
      };
    })
    .filter(({ readyAfter, freedBytes }) => readyAfter >= 0 && readyAfter < at - 1 && freedBytes > 0)
    .toSorted((x, y) => x.readyAfter - y.readyAfter);
}

/** The place of the last call ahead of the place `before` with which `call` may not change places; -1 for none. */
function lastConflict(rewrite: Rewrite, call: Call, before: number): number {
  const { graph, uses } = rewrite;
  const storages = new Set([...call.inputs, ...call.outputs].map(({ storage }) => storage));
  return [...storages]
    .flatMap((storage) => uses.get(storage)!.map((user) => rewrite.placeOf(user)))
    .filter((place) => place < before && !areIndependent(call, graph.calls[place]!))
    .reduce((last, place) => Math.max(last, place), -1);
}

function isFreedAfter({ graph, uses }: Rewrite, { storage }: Operand, reader: Call): boolean {
  return isIntermediate(graph, storage) && uses.get(storage)!.at(-1) === reader;
}

/** Groups of tensors that are updated together. Each frees `leastBytes` or more, and includes all that is ready with its last. */
function groupsOf(early: readonly EarlyTensor[], leastBytes: number): EarlyTensor[][] {
  const groups: EarlyTensor[][] = [];
  let [waiting, bytes]: [EarlyTensor[], number] = [[], 0];
  early.forEach((tensor, i) => {
    waiting.push(tensor);
    bytes += tensor.freedBytes;
    if (bytes < leastBytes || early[i + 1]?.readyAfter === tensor.readyAfter) return;
    groups.push(waiting);
    [waiting, bytes] = [[], 0];
  });
  return groups;
}
