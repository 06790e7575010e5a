import { CompileError, DeviceError, ShapeError } from '../../base/errors.ts';
import type { Place } from '../../base/host/user-place.ts';
import { type Layout, formatShape } from '../../base/shape.ts';
import { extentOf, overlapsItself } from '../../tensor/storage/extent.ts';
import { shareMemory } from '../../tensor/storage/overlap.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Operand, Program } from '../graph/graph.ts';

/**
 * The error for an argument that shares memory with what a function writes: the function works on a copy of it, and what is
 * written to one of them the other would not have. `place` is that of an op that writes; by default where the user's code is.
 */
export function sharedMemoryError({ shape }: Layout, place?: Place | null): CompileError {
  return new CompileError(
    `compile: an argument ${formatShape(shape)} shares memory with another tensor of the function, which writes to one of ` +
      'them; the function works on a copy of it, which the other would not be. Pass a copy() of it, or let the function find ' +
      'both outside, not among its arguments.',
    { place },
  );
}

/** Throws unless a function's caller may get back what it writes into an argument. */
export function checkWrittenArgument(x: Tensor): void {
  if (overlapsItself(x)) {
    throw new ShapeError(
      `compile: the function writes to an argument ${formatShape(x.shape)} with strides ${formatShape(x.strides)}, of ` +
        'which several elements lie at one place, as after expand(); pass a contiguous() copy.',
    );
  }
  const [hold] = x.storage.holdsOn(extentOf(x));
  if (!hold) return;
  throw new DeviceError(
    `compile: the function writes to an argument ${formatShape(x.shape)} that ${hold.holder} works on; wait for it first.`,
  );
}

/** What a program uses of a storage that it finds outside. */
interface ExternalUse {
  readonly operand: Operand;
  readonly isWritten: boolean;
  readonly place: Place | null;
}

/** The memory that a program finds outside of its arguments, and where these must not lie. */
export class ExternalMemory {
  /** The arguments that are written, by their indices, and where each is written first. */
  readonly #writtenArguments = new Map<number, Place | null>();
  readonly #captured = new Map<Storage, ExternalUse[]>();
  readonly #gradients: { readonly leaf: Tensor; readonly uses: ExternalUse[] }[] = [];
  readonly #writes: boolean;

  constructor({ calls, storages, written }: Pick<Program, 'calls' | 'storages' | 'written'>) {
    this.#writes = written.size > 0;
    const uses = usesByStorage(calls);
    storages.forEach(({ source }, number) => {
      const own = uses.get(number) ?? [];
      if (source.kind === 'argument' && written.has(number))
        this.#writtenArguments.set(source.index, placeOfWrite(own));
      if (source.kind === 'captured') this.#captured.set(source.storage, own);
      if (source.kind === 'gradient') this.#gradients.push({ leaf: source.leaf, uses: own });
    });
  }

  /** Throws where one of these arguments is memory that the program writes elsewhere too, before it has written any. */
  check(tensors: readonly Tensor[]): void {
    if (!this.#writes) return;
    tensors.forEach((x, index) => {
      const isWritten = this.#writtenArguments.has(index);
      if (isWritten) checkWrittenArgument(x);
      const place = this.#writtenArguments.get(index);
      for (let i = 0; i < index; i++)
        if ((isWritten || this.#writtenArguments.has(i)) && shareMemory(x, tensors[i]!))
          throw sharedMemoryError(x, place ?? this.#writtenArguments.get(i));
      const met = this.#usesOf(x.storage).find((use) => meets(x, use, isWritten));
      if (met) throw sharedMemoryError(x, met.isWritten ? met.place : place);
    });
  }

  #usesOf(storage: Storage): readonly ExternalUse[] {
    const captured = this.#captured.get(storage);
    if (captured) return captured;
    return this.#gradients.find(({ leaf }) => leaf.grad?.storage === storage)?.uses ?? [];
  }
}

function meets(x: Tensor, { operand, isWritten }: ExternalUse, isArgumentWritten: boolean): boolean {
  return (isWritten || isArgumentWritten) && shareMemory(x, { ...operand, storage: x.storage });
}

function placeOfWrite(uses: readonly ExternalUse[]): Place | null {
  return uses.find(({ isWritten }) => isWritten)?.place ?? null;
}

function usesByStorage(calls: Program['calls']): Map<number, ExternalUse[]> {
  const uses = new Map<number, ExternalUse[]>();
  const add = (operand: Operand, isWritten: boolean, place: Place | null) => {
    const known = uses.get(operand.storage);
    if (known) known.push({ operand, isWritten, place });
    else uses.set(operand.storage, [{ operand, isWritten, place }]);
  };
  for (const { inputs, outputs, place = null } of calls) {
    for (const input of inputs) add(input, false, place);
    for (const output of outputs) add(output, true, place);
  }
  return uses;
}
