import type { Operand, Graph } from '../../../src/compile/graph/graph.ts';
import { byteSize } from '../../../src/base/dtype.ts';
import { type Symbol, symbolOf } from './symbols.ts';

/** What the storages of a program hold, element by element. */
export class SymbolicMemory {
  readonly #storages = new Map<number, Int32Array>();
  readonly #graph: Graph;
  /** What was there before the graph writes it, different in each memory. */
  readonly #garbage: string;

  /** The storages whose memory others take over, by the numbers of the latter. */
  readonly #takenOver: ReadonlyMap<number, number>;

  constructor(graph: Graph, garbage: string, takenOver: ReadonlyMap<number, number>) {
    this.#graph = graph;
    this.#garbage = garbage;
    this.#takenOver = takenOver;
  }

  /** The elements in their logical order. */
  read(operand: Operand): Symbol[] {
    const elements = this.elements(operand.storage);
    return placesOf(operand).map((place) => elements[place]!);
  }

  write(operand: Operand, values: readonly Symbol[]): void {
    const elements = this.elements(operand.storage);
    placesOf(operand).forEach((place, i) => (elements[place] = values[i]!));
  }

  /** All of a storage. Those that are captured, or outlive the run, begin alike in all memories. */
  elements(storage: number): Int32Array {
    const before = this.#takenOver.get(storage);
    if (before !== undefined) return this.elements(before);
    let elements = this.#storages.get(storage);
    if (!elements) {
      const { byteLength, dtype, source } = this.#graph.storages[storage]!;
      const isAlike = source.kind !== 'made' || this.#graph.kept.has(storage);
      const name = isAlike ? `given ${storage}` : `${this.#garbage} ${storage}`;
      elements = Int32Array.from({ length: byteLength / byteSize(dtype) }, (_, i) => symbolOf(name, [i]));
      this.#storages.set(storage, elements);
    }
    return elements;
  }
}

/** The positions of an operand's elements in its storage, in their logical order. */
function placesOf({ shape, strides, offset }: Operand): number[] {
  let places = [offset];
  shape.forEach((length, d) => {
    places = places.flatMap((place) => Array.from({ length }, (_, i) => place + i * strides[d]!));
  });
  return places;
}

/** Whether both are the same elements in the same order. */
export function isSamePlace(a: Operand, b: Operand): boolean {
  if (a.storage !== b.storage || a.size !== b.size) return false;
  const others = placesOf(b);
  return placesOf(a).every((place, i) => place === others[i]);
}

/** Whether no element of one is an element of the other. */
export function areApart(a: Operand, b: Operand): boolean {
  if (a.storage !== b.storage) return true;
  const others = new Set(placesOf(b));
  return placesOf(a).every((place) => !others.has(place));
}
