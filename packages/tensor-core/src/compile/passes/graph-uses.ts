import type { Call, Graph } from '../graph/graph.ts';

/** Where a graph's calls use its storages. */
export class GraphUses {
  readonly graph: Graph;
  readonly #uses = new Map<number, number[]>();
  readonly #writes = new Map<number, number[]>();

  constructor(graph: Graph) {
    this.graph = graph;
    graph.calls.forEach(({ inputs, outputs }, at) => {
      for (const { storage } of inputs) note(this.#uses, storage, at);
      for (const { storage } of outputs) {
        note(this.#uses, storage, at);
        note(this.#writes, storage, at);
      }
    });
  }

  /** The storages that calls use. */
  get storages(): number[] {
    return [...this.#uses.keys()];
  }

  /** The places of the calls that use a storage, in their order. */
  of(storage: number): readonly number[] {
    return this.#uses.get(storage) ?? [];
  }

  /** Whether a storage's contents are still in memory at the call of a place. */
  isThere(storage: number, at: number): boolean {
    const { storages, kept } = this.graph;
    if (storages[storage]!.source.kind !== 'made' || kept.has(storage)) return true;
    return (this.#uses.get(storage)?.at(-1) ?? -1) >= at;
  }

  /** Whether a call after the first and before the second writes to a storage. */
  isWrittenBetween(storage: number, first: number, second: number): boolean {
    return (this.#writes.get(storage) ?? []).some((at) => at > first && at < second);
  }

  /**
   * The places of the calls that write a storage, all before it is first read, and that, run again, make the same of the same operands;
   * null if there are others.
   */
  makersOf(storage: number): readonly number[] | null {
    const writes = this.#writes.get(storage) ?? [];
    const isMade = writes.length > 0 && this.of(storage).slice(0, writes.length).at(-1) === writes.at(-1);
    return isMade && writes.every((at) => isRepeatable(this.graph, this.graph.calls[at]!)) ? writes : null;
  }
}

/** Calls whose attributes each run asks for anew stay as they are: they are asked for once. */
function isRepeatable({ storages }: Graph, { op, inputs, outputs, live }: Call): boolean {
  const isMade = ({ storage }: Call['outputs'][number]) => storages[storage]!.source.kind === 'made';
  const read = new Set(inputs.map(({ storage }) => storage));
  return (
    live === null &&
    !op.mutates?.length &&
    outputs.every((output) => isMade(output) && !read.has(output.storage))
  );
}

function note(places: Map<number, number[]>, storage: number, at: number): void {
  const list = places.get(storage);
  if (list === undefined) places.set(storage, [at]);
  else if (list.at(-1) !== at) list.push(at);
}
