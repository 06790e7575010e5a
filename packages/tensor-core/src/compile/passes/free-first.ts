import type { Call, Graph } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { areIndependent, usesOf } from './operands.ts';

/**
 * Moves a call that frees memory before neighbours that only take some, where they may change places: the gradient of an
 * activation, which is the last to read a weight's cast, before the gradient of the weight.
 */
export function freeFirst(graph: Graph): Graph {
  const memory = new MemoryOfCalls(graph);
  const calls: Call[] = [];
  for (const call of graph.calls) {
    let place = calls.length;
    while (place > 0 && memory.isLessBefore(call, calls[place - 1]!)) place--;
    calls.splice(place, 0, call);
    memory.place(call, calls, place);
  }
  return { ...graph, calls };
}

/** What calls make and free, in their new order. */
class MemoryOfCalls {
  readonly #graph: Graph;
  /** By storage, the call that makes it. */
  readonly #makers = new Map<number, Call>();
  readonly #lastUsers = new Map<number, Call>();

  constructor(graph: Graph) {
    this.#graph = graph;
    for (const [storage, users] of usesOf(graph.calls)) {
      this.#makers.set(storage, users[0]!);
      this.#lastUsers.set(storage, users.at(-1)!);
    }
  }

  /** Whether less memory is needed with `call` before its neighbour than after it, and they may change places. */
  isLessBefore(call: Call, neighbour: Call): boolean {
    // What runs on a stream of its own begins as early as it can.
    if (hasEffects(neighbour)) return false;
    const [made, madeByNeighbour] = [this.#madeBy(call), this.#madeBy(neighbour)];
    const shared = new Set(storagesOf(neighbour));
    const freed = this.#freedBy(call, (storage) => !shared.has(storage));
    if (freed <= made) return false;
    const after = Math.max(madeByNeighbour, madeByNeighbour - this.#freedBy(neighbour) + made);
    const before = Math.max(made, made - freed + madeByNeighbour);
    return before < after && areIndependent(call, neighbour);
  }

  /** Records that `call` is now at `place` of `calls`: calls after it may now be the last users of its storages. */
  place(call: Call, calls: readonly Call[], place: number): void {
    for (let i = place + 1; i < calls.length; i++)
      for (const storage of storagesOf(calls[i]!))
        if (this.#lastUsers.get(storage) === call) this.#lastUsers.set(storage, calls[i]!);
  }

  #madeBy(call: Call): number {
    return this.#bytesOf(storagesOf(call).filter((storage) => this.#makers.get(storage) === call));
  }

  #freedBy(call: Call, counts: (storage: number) => boolean = () => true): number {
    const { kept } = this.#graph;
    const last = storagesOf(call).filter((s) => this.#lastUsers.get(s) === call && !kept.has(s) && counts(s));
    return this.#bytesOf(last);
  }

  #bytesOf(storages: readonly number[]): number {
    let bytes = 0;
    for (const number of new Set(storages)) {
      const { source, byteLength } = this.#graph.storages[number]!;
      if (source.kind === 'made') bytes += byteLength;
    }
    return bytes;
  }
}

function storagesOf({ inputs, outputs }: Call): number[] {
  return [...inputs, ...outputs].map(({ storage }) => storage);
}
