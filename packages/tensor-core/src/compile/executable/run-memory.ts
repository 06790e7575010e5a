import type { StoredMemory } from '../../base/memory-view.ts';
import { byteSize } from '../../base/dtype.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { Binding } from './executable.ts';
import type { Operand, Graph } from '../graph/graph.ts';

/** The storages of one run of a graph: those that are given, and those that it makes and frees as it goes. */
export class RunMemory {
  readonly #graph: Graph;
  readonly #given: ReadonlyMap<number, Binding>;
  readonly #made = new Map<number, Storage>();

  constructor(graph: Graph, given: ReadonlyMap<number, Binding>) {
    this.#graph = graph;
    this.#given = given;
  }

  /** A handle to an operand, the caller's to dispose of; makes its storage if it is neither given nor there yet. */
  tensor(operand: Operand): Tensor {
    const given = this.#given.get(operand.storage);
    if (given) return tensorIn(given.storage, given.byteOffset, operand);
    return tensorIn(this.storage(operand.storage), 0, operand);
  }

  /** A made storage; makes it if it is not there yet. */
  storage(number: number): Storage {
    let storage = this.#made.get(number);
    if (!storage) {
      storage = new Storage(this.#graph.device, this.#graph.storages[number]!.byteLength);
      this.#made.set(number, storage);
    }
    return storage;
  }

  /** The address of a storage, given or made. */
  addressOf(number: number): number {
    const given = this.#given.get(number);
    if (given) return given.storage.buffer.address + given.byteOffset;
    return this.storage(number).buffer.address;
  }

  /** A made storage, if it is there already. */
  existing(number: number): Binding | undefined {
    const storage = this.#made.get(number);
    return storage && { storage, byteOffset: 0 };
  }

  given(number: number): Binding | undefined {
    return this.#given.get(number);
  }

  free(numbers: readonly number[]): void {
    for (const number of numbers) {
      this.#made.get(number)?.release();
      this.#made.delete(number);
    }
  }

  /** The storages that outlive the run; they are the caller's from here on. */
  take(): Map<number, Storage> {
    const kept = new Map<number, Storage>();
    for (const number of this.#graph.kept) {
      kept.set(number, this.storage(number));
      this.#made.delete(number);
    }
    return kept;
  }

  /** Frees what is left, also after a failure. */
  freeAll(): void {
    this.free([...this.#made.keys()]);
  }
}

/** A handle to an operand whose storage begins at `byteOffset` of `memory`; the caller's to dispose of. */
export function tensorIn(
  memory: StoredMemory,
  byteOffset: number,
  { dtype, shape, strides, offset }: Operand,
): Tensor {
  const start = byteOffset / byteSize(dtype);
  return new Tensor((memory as Storage).retain(), dtype, shape, strides, start + offset);
}
