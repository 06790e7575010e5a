import { CompileError, ShapeError } from '../../base/errors.ts';
import { DeviceError, type Place } from '@roofline/cuda/host';
import { type Layout, formatShape } from '../../base/shape.ts';
import { extentOf, overlapsItself } from '../../tensor/storage/extent.ts';
import { shareMemory } from '../../tensor/storage/overlap.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Operand, Graph } from '../graph/graph.ts';

/**
 * The error for an argument that shares memory with what a function writes: the function works on a copy of it, so that a
 * write to one would not reach the other. `place` is where the writing op was called; default: where the user's code is now.
 */
export function sharedMemoryError({ shape }: Layout, place?: Place | null): CompileError {
  return new CompileError(
    `compile: an argument ${formatShape(shape)} shares memory with another tensor of the function, which writes to one of ` +
      'them; the function works on a copy of it, which the other would not be. Pass a copy() of it, or let the function find ' +
      'both outside, not among its arguments.',
    { place },
  );
}

/** Throws a ShapeError or DeviceError unless what is written into an argument can be copied back to the caller's tensor. */
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

/** One use of a storage from outside the graph. */
interface ExternalUse {
  readonly operand: Operand;
  readonly isWritten: boolean;
  readonly place: Place | null;
}

/** The memory outside its arguments that a graph uses, which the arguments must not share where one of both is written. */
export class ExternalMemory {
  /** By the index of each argument that is written, where it is written first. */
  readonly #writtenArguments = new Map<number, Place | null>();
  readonly #captured = new Map<Storage, ExternalUse[]>();
  readonly #gradients: { readonly leaf: Tensor; readonly uses: ExternalUse[] }[] = [];

  constructor({ calls, storages }: Pick<Graph, 'calls' | 'storages'>) {
    for (const [number, uses] of usesByStorage(calls)) {
      const { source } = storages[number]!;
      const write = uses.find(({ isWritten }) => isWritten);
      if (source.kind === 'argument' && write) this.#writtenArguments.set(source.index, write.place);
      if (source.kind === 'captured') this.#captured.set(source.storage, uses);
      if (source.kind === 'gradient') this.#gradients.push({ leaf: source.leaf, uses });
    }
  }

  /** Throws, before anything is written, where an argument shares memory with what the graph writes elsewhere. */
  check(tensors: readonly Tensor[]): void {
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

function usesByStorage(calls: Graph['calls']): Map<number, ExternalUse[]> {
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
