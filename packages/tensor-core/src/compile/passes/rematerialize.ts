import { blockBytes } from '@roofline/cuda/parts';
import { bytesOf, costOf } from '../../op/cost.ts';
import { fullestCall } from '../cuda/arena-plan.ts';
import { partsOf } from '../cuda/arena.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Graph, GraphStorage } from '../graph/graph.ts';
import { GraphUses } from './graph-uses.ts';
import { withStorages } from './operands.ts';

/** A byte moved takes as long as so many FLOPs of a GPU's tensor cores. */
const flopsOfByte = 200;
/** Choices that save less for their cost than this share of the best one wait until that has been made. */
const closeToBest = 0.5;
/** A second making of an intermediate serves for a third one where it was last read so few calls before. */
const nearbyCalls = 16;
/** An intermediate that is read at many places is made so often at most. */
const mostVersions = 4;
/** Choices for each storage of a graph after which it stays as it is. */
const mostChoices = 8;
/** More calls than a block of a network has are not made again for one tensor. */
const mostRepeated = 64;

/** A graph that makes some of its intermediates twice. */
export interface Rematerialized {
  readonly graph: Graph;
  /** The most bytes that its intermediates need at one time. */
  readonly bytes: number;
}

/** An intermediate that is freed before the fullest call and made again after it. */
interface Choice extends Repetition {
  readonly storage: number;
  /** The place of the call that reads it next. */
  readonly before: number;
  readonly savedBytes: number;
  /** In FLOPs. */
  readonly cost: number;
}

/**
 * Frees intermediates after a use and makes them again before the next one, by the same calls on the same operands, until no more than
 * `mostBytes` are needed at one time: at the call where most are needed, those first that save the most bytes for each FLOP. Where that
 * cannot be reached, it comes as near as it can. Results are the same bits.
 */
export function rematerialize(graph: Graph, mostBytes: number): Rematerialized {
  const progress: Progress = { versions: new Map(), originals: new Map() };
  let current = graph;
  let best: Rematerialized = { graph, bytes: fullestCall(partsOf(graph)).bytes };
  const end = mostChoices * graph.storages.length;
  while (best.bytes > mostBytes && progress.originals.size < end) {
    const { call: place, bytes } = fullestCall(partsOf(current));
    const next = relieved(current, place, bytes - mostBytes, progress);
    if (next === current) break;
    current = next;
    const needed = fullestCall(partsOf(current)).bytes;
    if (needed < best.bytes) best = { graph: current, bytes: needed };
  }
  return best;
}

/** How a storage is made again. */
interface Repetition {
  /** The places of the calls that do, in order. */
  readonly calls: readonly number[];
  /** What they read in place of storages that have been made again already. */
  readonly standIns: ReadonlyMap<number, number>;
}

interface Progress {
  /** By intermediate, the storages in which it has been made again. */
  readonly versions: Map<number, number[]>;
  /** Of each of those, the intermediate. */
  readonly originals: Map<number, number>;
}

/** The graph with the best choices at the call of this place, until they save `excess` bytes; the same where there are none. */
function relieved(graph: Graph, place: number, excess: number, progress: Progress): Graph {
  const choices = choicesAt(new GraphUses(graph), place, progress).toSorted(
    (a, b) => b.savedBytes / b.cost - a.savedBytes / a.cost,
  );
  const [first] = choices;
  if (!first) return graph;
  const worst = (closeToBest * first.savedBytes) / first.cost;
  let [current, saved] = [graph, 0];
  for (const { storage, savedBytes, cost } of choices) {
    if (saved >= excess || savedBytes / cost < worst) break;
    // Earlier choices may have freed what this one would be made from.
    const choice = choiceOf(new GraphUses(current), place, storage, progress);
    if (!choice || choice.savedBytes / choice.cost < worst) continue;
    current = madeAgain(current, choice, progress);
    saved += choice.savedBytes;
  }
  return current;
}

function choicesAt(uses: GraphUses, place: number, progress: Progress): Choice[] {
  return uses.storages.flatMap((storage) => choiceOf(uses, place, storage, progress) ?? []);
}

/** How to do without a storage during the call of this place; null where that is impossible, or has been done. */
function choiceOf(uses: GraphUses, place: number, storage: number, progress: Progress): Choice | null {
  const { graph } = uses;
  if (!isIntermediate(graph, storage)) return null;
  const places = uses.of(storage);
  const before = places.find((each) => each > place);
  if (before === undefined || places[0]! >= place || places.includes(place)) return null;
  const repetition = repetitionOf(uses, storage, before, progress);
  if (!repetition) return null;
  const moved = movedLater(uses, storage, before, repetition.calls);
  const again = repetition.calls.filter((at) => !moved.has(at));
  const isNew = again.some((at) => graph.calls[at]!.outputs.some((output) => output.storage === storage));
  const others = versionsOf(storage, progress).filter((version) => uses.of(version).length > 0);
  if (isNew && others.length >= mostVersions) return null;
  // What only moves costs next to nothing, but comes in the order of its bytes.
  const cost = again.reduce((sum, at) => sum + workOf(graph.calls[at]!), 1);
  return {
    ...repetition,
    storage,
    before,
    cost,
    savedBytes: blockBytes(graph.storages[storage]!.byteLength),
  };
}

/** The storages in which the contents of this one have been made again. */
function versionsOf(storage: number, { versions, originals }: Progress): readonly number[] {
  return versions.get(originals.get(storage) ?? storage) ?? [];
}

/** In FLOPs, and bytes for what they would take in FLOPs. */
function workOf(call: Call): number {
  return flopsOf(call) + flopsOfByte * (bytesOf(call.inputs) + bytesOf(call.outputs));
}

/** The FLOPs of a call, and of those fused into it. */
export function flopsOf(call: Call): number {
  return (call.members ?? [call]).reduce(
    (sum, { op, inputs, outputs, attributes }) =>
      sum + costOf(op, inputs, outputs, attributes as never).flops,
    0,
  );
}

/** How a storage is made again before the call of a place; null where it cannot be. */
function repetitionOf(
  uses: GraphUses,
  storage: number,
  before: number,
  progress: Progress,
): Repetition | null {
  const calls = new Set<number>();
  const standIns = new Map<number, number>();
  const pending = [storage];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const makers = uses.makersOf(next);
    if (!makers || calls.size + makers.length > mostRepeated) return null;
    for (const at of makers) {
      if (calls.has(at)) continue;
      calls.add(at);
      for (const { storage: read } of uses.graph.calls[at]!.inputs) {
        if (uses.isWrittenBetween(read, at, before)) return null;
        if (uses.isThere(read, before) || standIns.has(read)) continue;
        const standIn = versionsOf(read, progress).find((version) => isNear(uses, version, before));
        if (standIn === undefined) pending.push(read);
        else standIns.set(read, standIn);
      }
    }
  }
  return { calls: [...calls].sort((a, b) => a - b), standIns };
}

/** Those of the calls that are not made twice: nothing but they, and calls from `before` on, read what they make. */
function movedLater(uses: GraphUses, storage: number, before: number, calls: readonly number[]): Set<number> {
  const moved = new Set<number>();
  for (const at of calls.toReversed()) {
    const isLate = uses.graph.calls[at]!.outputs.every((output) =>
      uses.of(output.storage).every((use) => {
        const isWrite =
          calls.includes(use) && uses.graph.calls[use]!.outputs.some((o) => o.storage === output.storage);
        return isWrite || moved.has(use) || (output.storage === storage && use >= before);
      }),
    );
    if (isLate) moved.add(at);
  }
  return moved;
}

/** Whether a storage is made before the call of a place, and read after that or shortly before. */
function isNear(uses: GraphUses, storage: number, before: number): boolean {
  const places = uses.of(storage);
  return places.length > 0 && places[0]! < before && places.at(-1)! >= before - nearbyCalls;
}

/** Makes a choice: adds the calls, whose results are read from there on. */
function madeAgain(
  graph: Graph,
  { storage, before, calls, standIns }: Choice,
  { versions, originals }: Progress,
): Graph {
  const storages: GraphStorage[] = [...graph.storages];
  const moves = new Map(standIns);
  const again = calls.map((at) => {
    const call = graph.calls[at]!;
    for (const made of new Set(call.outputs.map((output) => output.storage))) {
      if (moves.has(made)) continue;
      const version = storages.push(storages[made]!) - 1;
      moves.set(made, version);
      const original = originals.get(made) ?? made;
      originals.set(version, original);
      versions.set(original, [...(versions.get(original) ?? []), version]);
    }
    return withStorages(call, moves);
  });
  const redirection = new Map([[storage, moves.get(storage)!]]);
  const redirected = (call: Call): Call =>
    call.inputs.some((input) => input.storage === storage) ? withStorages(call, redirection) : call;
  const after = graph.calls.slice(before).map(redirected);
  const all = [...graph.calls.slice(0, before), ...again, ...after];
  const made = calls.map((at) => graph.calls[at]!);
  return { ...graph, storages, calls: withoutUnread(all, made, graph) };
}

/** The calls without those of `made` that nothing reads any more. */
function withoutUnread(calls: readonly Call[], made: readonly Call[], graph: Graph): Call[] {
  const reads = new Map<number, number>();
  const count = ({ inputs }: Call, by: number) => {
    for (const { storage } of inputs) reads.set(storage, (reads.get(storage) ?? 0) + by);
  };
  for (const call of calls) count(call, 1);
  const unread = new Set<Call>();
  for (const call of made.toReversed()) {
    const isRead = call.outputs.some(({ storage }) => reads.get(storage) || graph.kept.has(storage));
    if (isRead) continue;
    unread.add(call);
    count(call, -1);
  }
  return calls.filter((call) => !unread.has(call));
}
