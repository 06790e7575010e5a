import type { Storage } from '../../tensor/storage/storage.ts';
import type { GradientHook, Tensor } from '../../tensor/tensor.ts';

/** A leaf whose gradient was read or replaced, and the gradient that the function found; null for none. */
export interface TouchedGradient {
  readonly leaf: Tensor;
  readonly before: Tensor | null;
  /** Where a backward pass would have written one. */
  readonly buffer: Tensor | null;
  /** The leaf's gradient hooks: a backward pass inside the function runs those that only run ops. */
  readonly hooks: readonly GradientHook[];
  /** The storage that the gradient must stay in, such as a flat buffer; null for one that fills a storage of its own. */
  readonly within: Storage | null;
}

/** The gradients that a function reads or replaces while it is traced. */
export class TracedGradients {
  readonly #touched = new Map<Tensor, TouchedGradient>();
  /** Storages of gradients that were replaced. */
  readonly taken = new Set<Storage>();
  readonly #leaves = new Map<Storage, Tensor>();
  /** Those of them that had other handles, too, when the function found them. */
  readonly #shared = new Set<Storage>();

  get touched(): TouchedGradient[] {
    return [...this.#touched.values()];
  }

  /** The leaf whose gradient fills this storage, as the function found it; undefined for none. */
  leafOf(storage: Storage): Tensor | undefined {
    return this.#leaves.get(storage);
  }

  /** The gradient of a leaf is read or replaced; `used` are the storages that ops have taken before. */
  touch(leaf: Tensor, before: Tensor | null, used: { has(storage: Storage): boolean }): void {
    if (this.#touched.has(leaf)) return;
    const isPart = before !== null && !fillsStorage(before);
    const { gradientBuffer: buffer, gradientHooks: hooks } = leaf;
    this.#touched.set(leaf, { leaf, before, buffer, hooks, within: isPart ? before.storage : null });
    if (!before || isPart) return;
    const { storage } = before;
    if (storage.handles > 1) this.#shared.add(storage);
    const other = this.#leaves.get(storage);
    if (other) this.#pin(other);
    // An op may have taken another handle to it before.
    if (other || used.has(storage)) this.#pin(leaf);
    else this.#leaves.set(storage, leaf);
  }

  /** An op takes `x`, in the storage of a leaf's gradient, perhaps by another handle than the leaf's `grad`. */
  use(x: Tensor, leaf: Tensor): void {
    if (this.#shared.has(x.storage) && x !== this.#touched.get(leaf)!.before) this.#pin(leaf);
  }

  /** Ties the graph to this storage: another handle to it would not follow the leaf to its next gradient. */
  #pin(leaf: Tensor): void {
    const touched = this.#touched.get(leaf)!;
    this.#touched.set(leaf, { ...touched, within: touched.before!.storage });
  }
}

/** Whether a tensor fills its storage. */
export function fillsStorage({ isContiguous, byteLength, storage }: Tensor): boolean {
  return isContiguous && byteLength === storage.byteLength;
}
