import { isDeepStrictEqual } from 'node:util';
import type { Call, Graph, Operand } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { isFused } from './fused-ops.ts';

/**
 * By place, the places of the earlier calls that make the same, the last one first: the same op with the same attributes, on
 * operands of the same contents. Contents are compared by the calls that have written them.
 */
export function earlierSameCalls(graph: Graph): number[][] {
  const contents = new Contents(graph);
  return graph.calls.map((call, at) => contents.next(call, at));
}

/** Whether what a call makes depends on its operands and attributes alone. */
export function dependsOnOperands(call: Call): boolean {
  return stepsOf(call).every((step) => step.live === null && !hasEffects(step) && isPlain(step.attributes));
}

/** The op of a fused call is its own, those of its members are not. Members of other calls only say where they come from. */
export function stepsOf(call: Call): readonly Call[] {
  return isFused(call.op) ? call.members! : [call];
}

/** Calls that make the same. */
interface SameCalls {
  readonly attributes: unknown;
  readonly contents: number;
  readonly places: number[];
}

/** What is in storages, call after call. */
class Contents {
  readonly #graph: Graph;
  /** Of the storages that have been written. */
  readonly #written = new Map<number, string>();
  #distinct = 0;
  /** By op and operands. */
  readonly #seen = new Map<string, SameCalls[]>();
  readonly #opNumbers = new Map<Call['op'], number>();

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  /** The places of those before it that have made the same as this call. */
  next(call: Call, at: number): number[] {
    const same = dependsOnOperands(call) ? this.#sameCalls(call) : null;
    const contents = same?.contents ?? this.#distinct++;
    call.outputs.forEach(({ storage }, i) => this.#written.set(storage, `${contents}.${i}`));
    const earlier = same?.places.toReversed() ?? [];
    same?.places.push(at);
    return earlier;
  }

  #sameCalls(call: Call): SameCalls | null {
    const key = this.#keyOf(call);
    if (key === null) return null;
    const seen = this.#seen.get(key) ?? [];
    this.#seen.set(key, seen);
    const attributes = stepsOf(call).map((step) => step.attributes);
    const known = seen.find((same) => isDeepStrictEqual(same.attributes, attributes));
    if (known) return known;
    const first = { attributes, contents: this.#distinct++, places: [] };
    seen.push(first);
    return first;
  }

  /**
   * The steps of a call on contents; what is around a part that it writes is part of what it makes. Null for a fused call with a step on
   * a storage that has moved since.
   */
  #keyOf(call: Call): string | null {
    const made = new Map<number, string>();
    const read = ({ storage, ...layout }: Operand) => [
      made.get(storage) ?? this.#of(storage),
      ...layoutOf(layout),
    ];
    const steps: unknown[] = [];
    for (const [number, { op, inputs, outputs }] of stepsOf(call).entries()) {
      if (isFused(call.op) && inputs.some(({ storage }) => !made.has(storage) && !this.#isFilled(storage)))
        return null;
      steps.push([this.#numberOf(op), inputs.map(read), outputs.map(layoutOf)]);
      outputs.forEach(({ storage }, i) => made.set(storage, `${number}.${i} of this`));
    }
    const left = call.outputs.map(({ storage, ...layout }) => [
      made.get(storage),
      this.#of(storage),
      ...layoutOf(layout),
    ]);
    return JSON.stringify([steps, call.inputs.map(read), left]);
  }

  #numberOf(op: Call['op']): number {
    const number = this.#opNumbers.get(op) ?? this.#opNumbers.size;
    this.#opNumbers.set(op, number);
    return number;
  }

  #isFilled(storage: number): boolean {
    return this.#written.has(storage) || this.#graph.storages[storage]!.source.kind !== 'made';
  }

  #of(storage: number): string | number {
    const { source, byteLength } = this.#graph.storages[storage]!;
    return this.#written.get(storage) ?? (source.kind === 'made' ? `${byteLength} bytes` : storage);
  }
}

function layoutOf({ dtype, shape, strides, offset }: Omit<Operand, 'storage'>): unknown[] {
  return [dtype, shape, strides, offset];
}

/** Whether attributes are fully described by their contents: no functions, and no instances of classes. */
function isPlain(value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== 'object') return typeof value !== 'function' && typeof value !== 'symbol';
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || Array.isArray(value)) && Object.values(value).every(isPlain);
}
