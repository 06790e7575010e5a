import type { CudaProperties } from '@roofline/cuda';
import { costOf } from '../../op/cost.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
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
import { productUpdates, updateByProducts } from './update-by-products.ts';

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
 * finds them. Results are the same bits. Where the optimizer's kernel can multiply gradients itself, it does, and they are never
 * in memory: their sums are of another order, then. Gradients that are first read together, as by clipping or a scaler, still exist
 * together. Where they come by calls with effects, such as collectives, those that come first are updated while the others come.
 */
export function updateEarly(graph: Graph, properties: CudaProperties): Graph {
  const rewrite = new Rewrite(graph);
  const updatesAfter = new Map<number, Call[]>();
  const addAfter = (place: number, part: Call) =>
    updatesAfter.set(place, [...(updatesAfter.get(place) ?? []), part]);
  for (const call of graph.calls) {
    const update = updateOf(call);
    if (!update) continue;
    const conflict = (tensor: TensorUpdate) => lastConflict(rewrite, call, update, tensor);
    const multiplied = productUpdates(rewrite, update, properties, conflict);
    const others = without(update.tensors, multiplied.flat());
    const groups = groupsOf(earlyTensors(rewrite, call, update, others), properties.l2Bytes / 2);
    const rest = inHalves(rewrite, call, update, without(others, groups.flat()));
    if (multiplied.length + groups.length === 0 && rest.length < 2) continue;
    const numbers = { coefficients: hoistCoefficients(rewrite, update), factor: null };
    rewrite.replace(call, ...rest.map((tensors) => partialUpdate(update, tensors, numbers)));
    for (const group of multiplied) {
      for (const { product } of group) rewrite.replace(product);
      addAfter(group.at(-1)!.readyAfter, updateByProducts(update, group, numbers));
    }
    for (const group of groups) {
      const tensors = group.map(({ tensor }) => tensor);
      addAfter(group.at(-1)!.readyAfter, partialUpdate(update, tensors, numbers));
    }
  }
  for (const [place, parts] of updatesAfter) rewrite.addAfter(graph.calls[place]!, parts);
  return rewrite.finish();
}

function without(
  tensors: readonly TensorUpdate[],
  early: readonly { readonly tensor: TensorUpdate }[],
): TensorUpdate[] {
  const left = new Set(tensors);
  for (const { tensor } of early) left.delete(tensor);
  return [...left];
}

/** Those of the tensors whose early update frees memory, in the order in which they are ready. */
function earlyTensors(
  rewrite: Rewrite,
  call: Call,
  update: Update,
  tensors: readonly TensorUpdate[],
): EarlyTensor[] {
  const at = rewrite.placeOf(call);
  return tensors
    .map((tensor) => {
      const freed = updatedBy(update, tensor).filter((operand) => isFreedAfter(rewrite, operand, call));
      return {
        tensor,
        readyAfter: lastConflict(rewrite, call, update, tensor),
        freedBytes: freed.reduce((sum, { byteLength }) => sum + byteLength, 0),
      };
    })
    .filter(({ readyAfter, freedBytes }) => readyAfter >= 0 && readyAfter < at - 1 && freedBytes > 0)
    .toSorted((x, y) => x.readyAfter - y.readyAfter);
}

/** The place of the last call that must precede the early update of one tensor; -1 for none. */
function lastConflict(rewrite: Rewrite, call: Call, update: Update, tensor: TensorUpdate): number {
  const { graph } = rewrite;
  const last = lastBefore(rewrite, call, update, tensor);
  const hasToWait = last >= 0 && hasEffects(graph.calls[last]!);
  return hasToWait ? nextWithEffects(rewrite, last, rewrite.placeOf(call)) : last;
}

/** The place of the last call ahead of an update with which that of one tensor may not change places; -1 for none. */
function lastBefore(
  rewrite: Rewrite,
  update: Call,
  { shared }: Update,
  { inputs, outputs, copy }: TensorUpdate,
): number {
  const { graph, uses } = rewrite;
  const before = rewrite.placeOf(update);
  const call = { ...update, inputs: [...inputs, ...shared], outputs: copy ? [...outputs, copy] : outputs };
  const storages = new Set([...call.inputs, ...call.outputs].map(({ storage }) => storage));
  return [...storages]
    .flatMap((storage) => uses.get(storage)!.map((user) => rewrite.placeOf(user)))
    .filter((place) => place < before && !areIndependent(call, graph.calls[place]!))
    .reduce((last, place) => Math.max(last, place), -1);
}

/**
 * Tensors in the order in which calls with effects bring what they wait for, again and again divided into the half that comes first and
 * the rest: few calls, of which the last waits for little more than the last that comes. One list where all wait for the same.
 */
function inHalves(
  rewrite: Rewrite,
  call: Call,
  update: Update,
  tensors: readonly TensorUpdate[],
): TensorUpdate[][] {
  const { calls } = rewrite.graph;
  const waitsFor = (tensor: TensorUpdate) => {
    const last = lastBefore(rewrite, call, update, tensor);
    return last >= 0 && hasEffects(calls[last]!) ? last : -1;
  };
  const coming = [...Map.groupBy(tensors, waitsFor)].toSorted(([a], [b]) => a - b);
  const halves: TensorUpdate[][] = [];
  let [left, half] = [bytesUpdated(tensors), Infinity];
  for (const [, together] of coming) {
    if (left <= half) {
      halves.push([]);
      half = left / 2;
    }
    halves.at(-1)!.push(...together);
    left -= bytesUpdated(together);
  }
  return halves;
}

function bytesUpdated(tensors: readonly TensorUpdate[]): number {
  return tensors.reduce((sum, { outputs: [parameter] }) => sum + parameter!.byteLength, 0);
}

/**
 * What runs on a stream of its own, such as a collective, goes on while others run: an update that waited right after it would end
 * that, and one that waits for long keeps its memory. It is done once something waits for the next one, as for weights that are
 * gathered, or when others have run for long enough; where only the update waits for the next, by the time that it begins. `end` if
 * there is no next one.
 */
function nextWithEffects({ graph: { calls }, uses }: Rewrite, place: number, end: number): number {
  const next = calls.findIndex((call, at) => at > place && hasEffects(call));
  if (next === -1) return end;
  const readers = calls[next]!.outputs.flatMap(({ storage }) => uses.get(storage)!);
  const waiting = calls.findIndex((call, at) => at > next && !hasEffects(call) && readers.includes(call));
  if (waiting === -1 || waiting >= end) return next;
  return enoughAfter(calls, place, waiting);
}

/** The first place after a call with effects where the calls since have taken twice its time, by estimates; `last` at most. */
function enoughAfter(calls: readonly Call[], place: number, last: number): number {
  let seconds = 2 * estimatedSeconds(calls[place]!);
  for (let at = place + 1; at < last; at++) {
    seconds -= hasEffects(calls[at]!) ? 0 : estimatedSeconds(calls[at]!);
    if (seconds <= 0) return at;
  }
  return last;
}

// A link between nodes, and an H200.
const perSecond = { linkBytes: 1e11, flops: 8e14, bytesMoved: 4e12 };

function estimatedSeconds({ op, inputs, outputs, attributes }: Call): number {
  const { flops, bytesMoved, linkBytes = 0 } = costOf(op, inputs, outputs, attributes as never);
  if (op.effects) return linkBytes / perSecond.linkBytes;
  return Math.max(flops / perSecond.flops, bytesMoved / perSecond.bytesMoved);
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
