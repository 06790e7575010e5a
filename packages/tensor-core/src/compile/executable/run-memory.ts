import type { StoredMemory } from '../../base/memory-view.ts';
import { byteSize } from '../../base/dtype.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { Binding } from './executable.ts';
import type { Operand, Program } from '../graph/graph.ts';

/** The storages of one run of a program: those that are given, and those that it makes and frees as it goes. */
export class ProgramMemory {
  readonly #program: Program;
  readonly #given: ReadonlyMap<number, Binding>;
  readonly #made = new Map<number, Storage>();

  constructor(program: Program, given: ReadonlyMap<number, Binding>) {
    this.#program = program;
    this.#given = given;
  }

  /** A handle to an operand, the caller's to dispose; makes its storage where it is the program's and not there yet. */
  tensor(operand: Operand): Tensor {
    const given = this.#given.get(operand.storage);
    if (given) return tensorIn(given.storage, given.byteOffset, operand);
    return tensorIn(this.storage(operand.storage), 0, operand);
  }

  /** A made storage. */
  storage(number: number): Storage {
    let storage = this.#made.get(number);
    if (!storage) {
      storage = new Storage(this.#program.device, this.#program.storages[number]!.byteLength);
      this.#made.set(number, storage);
    }
    return storage;
  }

  /** Where a storage that is there lies. */
  addressOf(number: number): number {
    const given = this.#given.get(number);
    if (given) return given.storage.buffer.address + given.byteOffset;
    return this.storage(number).buffer.address;
  }

  /** A made storage that is there already. */
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

  /** Those that outlive the run; they are the caller's now. */
  take(): Map<number, Storage> {
    const kept = new Map<number, Storage>();
    for (const number of this.#program.kept) {
      kept.set(number, this.storage(number));
      this.#made.delete(number);
    }
    return kept;
  }

  /** Frees what is left, after a failure too. */
  freeAll(): void {
    this.free([...this.#made.keys()]);
  }
}

/** A handle to an operand whose storage of the program begins at `byteOffset` of `memory`; the caller's to dispose. */
export function tensorIn(
  memory: StoredMemory,
  byteOffset: number,
  { dtype, shape, strides, offset }: Operand,
): Tensor {
  const start = byteOffset / byteSize(dtype);
  return new Tensor((memory as Storage).retain(), dtype, shape, strides, start + offset);
}
