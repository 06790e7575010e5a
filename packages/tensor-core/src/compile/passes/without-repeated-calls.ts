import { partsOf } from '../cuda/arena.ts';
import { MemoryRoom } from '../cuda/memory-room.ts';
import type { Call, Graph } from '../graph/graph.ts';
import { isIntermediate } from '../graph/liveness.ts';
import { isCast } from './is-op.ts';
import { withStorages } from './operands.ts';
import { dependsOnOperands, earlierSameCalls, stepsOf } from './same-calls.ts';

/** A result that is otherwise no longer needed is small up to so many bytes. */
const mostBytesOfSmall = 2 ** 16;

/**
 * Drops calls that repeat an earlier one; see `earlierSameCalls`. Their readers then read the first results. Calls whose results
 * outlive the run, or are written by others, stay; so do those whose first result is no longer needed by then, as in a checkpoint's
 * second run: it would have to be kept in memory, which is done for small ones or, where `mostBytes` says how many bytes may be
 * needed at one time, for those that there is room for.
 */
export function withoutRepeatedCalls(graph: Graph, mostBytes?: number): Graph {
  const repeats = new Repeats(graph, mostBytes);
  const earlier = earlierSameCalls(graph);
  // From the end: what only dropped calls read need not be kept for them.
  for (let at = graph.calls.length - 1; at >= 0; at--) repeats.consider(at, earlier[at]!);
  return repeats.finish();
}

class Repeats {
  readonly #graph: Graph;
  /** Null where only small results may take more memory. */
  readonly #room: MemoryRoom | null;
  /** Storages whose memory is another's from their last use on. */
  readonly #overwritten: ReadonlySet<number>;
  /** By storage, the places of the calls that use it, in their order. */
  readonly #uses = new Map<number, number[]>();
  /** By storage, how many calls write it, be it only for their own later steps. */
  readonly #writers = new Map<number, number>();
  readonly #dropped = new Set<number>();
  /** Storages that dropped calls have read. */
  readonly #lessRead = new Set<number>();
  /** From the storage of a repeated result to that of an earlier one, which may have moved itself. */
  readonly #moves = new Map<number, number>();

  constructor(graph: Graph, mostBytes: number | undefined) {
    this.#graph = graph;
    const parts = mostBytes === undefined ? [] : partsOf(graph);
    this.#room = mostBytes === undefined ? null : new MemoryRoom(parts, mostBytes);
    this.#overwritten = new Set(parts.flatMap(({ numbers }) => numbers.slice(0, -1)));
    graph.calls.forEach((call, at) => {
      for (const storage of new Set([...call.inputs, ...call.outputs].map((operand) => operand.storage)))
        if (!this.#uses.get(storage)?.push(at)) this.#uses.set(storage, [at]);
      for (const storage of new Set(stepsOf(call).flatMap(({ outputs }) => outputs.map((o) => o.storage))))
        this.#writers.set(storage, (this.#writers.get(storage) ?? 0) + 1);
    });
  }

  /** Drops the call of a place if one of the `earlier` can serve in its place, or if only dropped calls read what it makes. */
  consider(at: number, earlier: readonly number[]): void {
    if (this.#isUnread(at)) return this.#drop(at);
    if (this.#isKept(at) || !this.#fillsItsOwn(at)) return;
    const able = earlier.filter((first) => this.#fillsItsOwn(first));
    const first =
      able.find((other) => this.#areThere(other, at)) ?? able.find((other) => this.#keep(other, at));
    if (first === undefined) return;
    this.#move(first, at);
    this.#drop(at);
  }

  finish(): Graph {
    if (this.#dropped.size === 0) return this.#graph;
    // A move from a later call is noted before one from an earlier call, to which it may lead.
    for (const [from, to] of [...this.#moves].toReversed()) this.#moves.set(from, this.#moves.get(to) ?? to);
    const calls = this.#graph.calls.filter((_, at) => !this.#dropped.has(at));
    const reads = (call: Call) => call.inputs.some(({ storage }) => this.#moves.has(storage));
    return {
      ...this.#graph,
      calls: calls.map((call) => (reads(call) ? withStorages(call, this.#moves) : call)),
    };
  }

  /** Whether nothing reads any more what a call makes. */
  #isUnread(at: number): boolean {
    const call = this.#graph.calls[at]!;
    return (
      dependsOnOperands(call) &&
      call.outputs.some(({ storage }) => this.#lessRead.has(storage)) &&
      call.outputs.every(
        ({ storage }) => isIntermediate(this.#graph, storage) && this.#lastUse(storage) <= at,
      )
    );
  }

  /** Whether a call only fills storages that end with the run, and that no other call writes. */
  #fillsItsOwn(at: number): boolean {
    const { op, inputs, outputs } = this.#graph.calls[at]!;
    // Before there is a budget, casts of parameters are left to `carryLowPrecisionCopies`, which considers when a parameter is updated.
    const castsParameter =
      !this.#room && isCast(op) && this.#graph.storages[inputs[0]!.storage]!.source.kind === 'captured';
    return (
      !op.mutates &&
      !castsParameter &&
      outputs.length > 0 &&
      outputs.every(({ storage }) => this.#isMadeOnce(storage))
    );
  }

  #isMadeOnce(storage: number): boolean {
    return this.#graph.storages[storage]!.source.kind === 'made' && this.#writers.get(storage) === 1;
  }

  #isKept(at: number): boolean {
    return this.#graph.calls[at]!.outputs.some(({ storage }) => this.#graph.kept.has(storage));
  }

  /** Whether results of `first` are needed beyond another place anyway, or are small. */
  #areThere(first: number, at: number): boolean {
    const ended = this.#endedBefore(first, at);
    return this.#room ? ended.length === 0 : ended.every(({ byteLength }) => byteLength <= mostBytesOfSmall);
  }

  #endedBefore(first: number, at: number): Call['outputs'] {
    return this.#graph.calls[first]!.outputs.filter(
      ({ storage }) => !this.#graph.kept.has(storage) && this.#lastUse(storage) < at,
    );
  }

  /**
   * Keeps results of `first` up to another place, if there is room for them. At their last use there is, but where they are overwritten
   * then, and from the other place on the room of what is dropped there is theirs.
   */
  #keep(first: number, at: number): boolean {
    const parts = this.#endedBefore(first, at).map(({ storage }) => ({
      byteLength: this.#graph.storages[storage]!.byteLength,
      first: this.#lastUse(storage) + (this.#overwritten.has(storage) ? 0 : 1),
      last: at - 1,
    }));
    return this.#room !== null && this.#room.take(parts);
  }

  #lastUse(storage: number): number {
    return this.#uses.get(storage)!.at(-1)!;
  }

  #move(first: number, at: number): void {
    const { outputs } = this.#graph.calls[first]!;
    this.#graph.calls[at]!.outputs.forEach(({ storage }, i) => {
      const to = outputs[i]!.storage;
      this.#moves.set(storage, to);
      const uses = [...this.#uses.get(to)!, ...this.#uses.get(storage)!.filter((use) => use !== at)];
      this.#uses.set(
        to,
        uses.toSorted((a, b) => a - b),
      );
    });
  }

  #drop(at: number): void {
    this.#dropped.add(at);
    for (const { storage } of this.#graph.calls[at]!.inputs) {
      this.#lessRead.add(storage);
      this.#uses.set(
        storage,
        this.#uses.get(storage)!.filter((use) => use !== at),
      );
    }
  }
}
