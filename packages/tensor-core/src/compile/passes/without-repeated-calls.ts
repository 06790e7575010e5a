import { isDeepStrictEqual } from 'node:util';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { isCast } from './is-op.ts';

/** A result that is otherwise no longer needed is kept alive to replace a repetition only up to so many bytes. */
const mostBytesKept = 2 ** 16;

/**
 * Drops calls that repeat an earlier one: the same op with the same attributes on operands not written in between. Their
 * readers then read the first results. Calls whose results outlive the run, or are written by others, stay; so do those whose
 * first result is no longer needed by then, as in a checkpoint's second run: it would have to be kept in memory.
 */
export function withoutRepeatedCalls(graph: Graph): Graph {
  const repeats = new Repeats(graph);
  const calls = graph.calls.flatMap((call, at) => repeats.next(call, at) ?? []);
  return calls.length === graph.calls.length ? graph : { ...graph, calls };
}

class Repeats {
  readonly #graph: Graph;
  /** By storage, the place of the last call that uses it. */
  readonly #lastUses = new Map<number, number>();
  /** By storage, how many calls write it. */
  readonly #writers = new Map<number, number>();
  /** By storage, how often it has been written so far. */
  readonly #versions = new Map<number, number>();
  /** The calls that may be repeated, by op and operands. */
  readonly #seen = new Map<string, Call[]>();
  readonly #opNumbers = new Map<Call['op'], number>();
  /** From the storage of a repeated result to that of the first one. */
  readonly #moves = new Map<number, number>();

  constructor(graph: Graph) {
    this.#graph = graph;
    graph.calls.forEach(({ inputs, outputs }, at) => {
      for (const { storage } of [...inputs, ...outputs]) this.#lastUses.set(storage, at);
      for (const { storage } of outputs) count(this.#writers, storage);
    });
  }

  /** The next call of the graph, reading what stays; null if it is dropped. */
  next(given: Call, at: number): Call | null {
    const isMoved = given.inputs.some(({ storage }) => this.#moves.has(storage));
    const call = isMoved ? { ...given, inputs: given.inputs.map((input) => this.#moved(input)) } : given;
    const key = this.#isPure(call) ? this.#keyOf(call) : null;
    if (key !== null) {
      const known = this.#seen.get(key);
      const first = known?.find((other) => isDeepStrictEqual(other.attributes, call.attributes));
      if (first && this.#mayServe(first, call, at)) return this.#moveResults(first, call);
      if (!known) this.#seen.set(key, [call]);
      else if (first) known[known.indexOf(first)] = call;
      else known.push(call);
    }
    for (const { storage } of call.outputs) count(this.#versions, storage);
    return call;
  }

  #moved(operand: Operand): Operand {
    const storage = this.#moves.get(operand.storage);
    return storage === undefined ? operand : { ...operand, storage };
  }

  /** Whether a call only makes outputs of its own, which depend on its operands alone. */
  #isPure(call: Call): boolean {
    const { op, outputs, attributes, live } = call;
    return (
      live === null &&
      !op.mutates &&
      !hasEffects(call) &&
      !this.#castsParameter(call) &&
      isPlain(attributes) &&
      outputs.length > 0 &&
      new Set(outputs.map(({ storage }) => storage)).size === outputs.length &&
      outputs.every(
        ({ storage }) =>
          this.#graph.storages[storage]!.source.kind === 'made' && this.#writers.get(storage) === 1,
      )
    );
  }

  /** Casts of parameters are left to `carryLowPrecisionCopies`, which considers when a parameter is updated. */
  #castsParameter({ op, inputs }: Call): boolean {
    return isCast(op) && this.#graph.storages[inputs[0]!.storage]!.source.kind === 'captured';
  }

  #keyOf({ op, inputs, outputs }: Call): string {
    let number = this.#opNumbers.get(op);
    if (number === undefined) this.#opNumbers.set(op, (number = this.#opNumbers.size));
    const read = inputs.map((input) => [
      input.storage,
      this.#versions.get(input.storage) ?? 0,
      ...layoutOf(input),
    ]);
    const made = outputs.map((output) => [
      this.#graph.storages[output.storage]!.byteLength,
      ...layoutOf(output),
    ]);
    return JSON.stringify([number, read, made]);
  }

  /** Whether the results of `first` can replace those of `call` without keeping much more memory alive. */
  #mayServe(first: Call, call: Call, at: number): boolean {
    const { kept } = this.#graph;
    return call.outputs.every(({ storage, byteLength }, i) => {
      const from = first.outputs[i]!.storage;
      const isThere = kept.has(from) || this.#lastUses.get(from)! >= at;
      return !kept.has(storage) && (isThere || byteLength <= mostBytesKept);
    });
  }

  #moveResults(first: Call, call: Call): null {
    call.outputs.forEach(({ storage }, i) => {
      const to = first.outputs[i]!.storage;
      this.#moves.set(storage, to);
      this.#lastUses.set(to, Math.max(this.#lastUses.get(to)!, this.#lastUses.get(storage)!));
    });
    return null;
  }
}

function layoutOf({ dtype, shape, strides, offset }: Operand): unknown[] {
  return [dtype, shape, strides, offset];
}

function count(counts: Map<number, number>, storage: number): void {
  counts.set(storage, (counts.get(storage) ?? 0) + 1);
}

/** Whether attributes are fully described by their contents: no functions, and no instances of classes. */
function isPlain(value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== 'object') return typeof value !== 'function' && typeof value !== 'symbol';
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || Array.isArray(value)) && Object.values(value).every(isPlain);
}
