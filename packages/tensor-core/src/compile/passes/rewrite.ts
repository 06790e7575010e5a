import type { Call, Operand, Graph, GraphStorage } from '../graph/graph.ts';
import { usesOf } from './operands.ts';

/** By storage number, where its operands move. */
export type Moves = ReadonlyMap<number, (operand: Operand) => Operand>;

/** A call of a graph, and its place. */
export interface Placed {
  readonly call: Call;
  readonly at: number;
}

/** Changes of a graph that do not affect one another, all made at once. */
export class Rewrite {
  readonly graph: Graph;
  /** The calls that use each storage, in their order. */
  readonly uses: ReadonlyMap<number, readonly Call[]>;
  readonly #places: ReadonlyMap<Call, number>;
  readonly #storages: GraphStorage[];
  readonly #moves = new Map<number, (operand: Operand) => Operand>();
  /** What replaces a call. */
  readonly #replaced = new Map<Call, readonly Call[]>();
  readonly #before = new Map<Call, Call[]>();

  constructor(graph: Graph) {
    this.graph = graph;
    this.uses = usesOf(graph.calls);
    this.#places = new Map(graph.calls.map((call, at) => [call, at]));
    this.#storages = [...graph.storages];
  }

  placeOf(call: Call): number {
    return this.#places.get(call)!;
  }

  /** The place of the last call that uses a storage. */
  lastUseOf({ storage }: Operand): number {
    return this.placeOf(this.uses.get(storage)!.at(-1)!);
  }

  /** Whether no change affects these calls and storages yet. */
  isFree(calls: readonly Call[], operands: readonly Operand[]): boolean {
    return (
      calls.every((call) => !this.#replaced.has(call)) &&
      operands.every(({ storage }) => !this.#moves.has(storage))
    );
  }

  /** Adds a storage, with what moves into it; returns its number. */
  add(storage: GraphStorage, moves: (joint: number) => Moves): number {
    const joint = this.#storages.push(storage) - 1;
    for (const [number, move] of moves(joint)) this.#moves.set(number, move);
    return joint;
  }

  /** An operand after all moves so far. */
  moved(operand: Operand): Operand {
    return this.#moves.get(operand.storage)?.(operand) ?? operand;
  }

  /** Replaces a call by `others`, whose operands in moved storages move as well. */
  replace(call: Call, ...others: readonly Call[]): void {
    this.#replaced.set(call, others);
  }

  /** Moves a call, or adds a new one, before another. */
  hoist(call: Call, before: Call): void {
    this.#replaced.set(call, []);
    const hoisted = this.#before.get(before);
    if (hoisted) hoisted.push(call);
    else this.#before.set(before, [call]);
  }

  /** Adds `others` after a call, or after what replaces it. */
  addAfter(call: Call, others: readonly Call[]): void {
    this.#replaced.set(call, [...(this.#replaced.get(call) ?? [call]), ...others]);
  }

  /** The graph with all changes; the same object if there are none. */
  finish(): Graph {
    if (this.#moves.size === 0 && this.#replaced.size === 0) return this.graph;
    const calls = this.graph.calls.flatMap((call) => [
      ...(this.#before.get(call) ?? []),
      ...(this.#replaced.get(call) ?? [call]),
    ]);
    return { ...this.graph, storages: this.#storages, calls: calls.map((call) => this.#withMoves(call)) };
  }

  #withMoves(call: Call): Call {
    const isMoved = [...call.inputs, ...call.outputs].some(({ storage }) => this.#moves.has(storage));
    if (!isMoved) return call;
    const place = (operand: Operand) => this.moved(operand);
    return { ...call, inputs: call.inputs.map(place), outputs: call.outputs.map(place) };
  }
}

/** Applies `change` at each call of a graph, again and again until nothing changes. */
export function rewritten(graph: Graph, change: (rewrite: Rewrite, at: number) => void): Graph {
  for (let before = graph; ;) {
    const rewrite = new Rewrite(before);
    for (let at = 0; at < before.calls.length; at++) change(rewrite, at);
    const after = rewrite.finish();
    if (after === before) return after;
    before = after;
  }
}
