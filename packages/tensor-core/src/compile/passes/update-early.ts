import type { CudaProperties } from '../../cuda/kernel.ts';
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
  /** The place of the last call that its update must stay behind. */
  readonly readyBehind: number;
  /** Of what the program has made and nobody needs behind the update. */
  readonly freedBytes: number;
}

/**
 * A program whose optimizers update a tensor as soon as its gradient is final and nothing reads the tensor as it was any
 * more, so that memory never holds all gradients: those of so many bytes at a time as half of the GPU's L2 cache, where the
 * update finds them. The results are the same bits. Gradients that are looked at together first, as clipping and a scaler
 * do, are there together.
 */
export function updateEarly(graph: Graph, { l2Bytes }: Pick<CudaProperties, 'l2Bytes'>): Graph {
  const rewrite = new Rewrite(graph);
  const behind = new Map<number, Call[]>();
  for (const call of graph.calls) {
    const update = updateOf(call);
    const groups = update ? groupsOf(earlyTensors(rewrite, call, update), l2Bytes / 2) : [];
    if (groups.length === 0) continue;
    const numbers = { coefficients: hoistCoefficients(rewrite, update!), factor: null };
    const early = new Set(groups.flat().map(({ tensor }) => tensor));
    const rest = update!.tensors.filter((tensor) => !early.has(tensor));
    rewrite.replace(call, ...(rest.length > 0 ? [partialUpdate(update!, rest, numbers)] : []));
    for (const group of groups) {
      const place = group.at(-1)!.readyBehind;
      const tensors = group.map(({ tensor }) => tensor);
      behind.set(place, [...(behind.get(place) ?? []), partialUpdate(update!, tensors, numbers)]);
    }
  }
  for (const [place, parts] of behind) rewrite.addBehind(graph.calls[place]!, parts);
  return rewrite.finish();
}

/** Those of an update whose early update frees memory, by when they are ready. */
function earlyTensors(rewrite: Rewrite, call: Call, update: Update): EarlyTensor[] {
  const at = rewrite.placeOf(call);
  return update.tensors
    .map((tensor) => {
      const { inputs, outputs, copy } = tensor;
      const freed = updatedBy(update, tensor).filter((operand) => isFreedBehind(rewrite, operand, call));
      const part = {
        ...call,
        inputs: [...inputs, ...update.shared],
        outputs: copy ? [...outputs, copy] : outputs,
      };
      return {
        tensor,
        readyBehind: lastConflict(rewrite, part, at),
        freedBytes: freed.reduce((sum, { byteLength }) => sum + byteLength, 0),
      };
    })
    .filter(({ readyBehind, freedBytes }) => readyBehind >= 0 && readyBehind < at - 1 && freedBytes > 0)
    .toSorted((x, y) => x.readyBehind - y.readyBehind);
}

/** The place of the last call in front of `before` that `call` may not change places with; -1 for none. */
function lastConflict(rewrite: Rewrite, call: Call, before: number): number {
  const { graph, uses } = rewrite;
  const storages = new Set([...call.inputs, ...call.outputs].map(({ storage }) => storage));
  return [...storages]
    .flatMap((storage) => uses.get(storage)!.map((user) => rewrite.placeOf(user)))
    .filter((place) => place < before && !areIndependent(call, graph.calls[place]!))
    .reduce((last, place) => Math.max(last, place), -1);
}

function isFreedBehind({ graph, uses }: Rewrite, { storage }: Operand, reader: Call): boolean {
  return isIntermediate(graph, storage) && uses.get(storage)!.at(-1) === reader;
}

/** Tensors that are updated together. Each group frees `mostBytes`, and what more is ready with its last tensor. */
function groupsOf(early: readonly EarlyTensor[], mostBytes: number): EarlyTensor[][] {
  const groups: EarlyTensor[][] = [];
  let [waiting, bytes]: [EarlyTensor[], number] = [[], 0];
  early.forEach((tensor, i) => {
    waiting.push(tensor);
    bytes += tensor.freedBytes;
    if (bytes < mostBytes || early[i + 1]?.readyBehind === tensor.readyBehind) return;
    groups.push(waiting);
    [waiting, bytes] = [[], 0];
  });
  return groups;
}
