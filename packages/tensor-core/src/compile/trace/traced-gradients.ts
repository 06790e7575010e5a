import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** A leaf whose gradient was looked at or replaced, and the gradient that the function found; null for none. */
export interface TouchedGradient {
  readonly leaf: Tensor;
  readonly before: Tensor | null;
  /** Where a backward pass would have written one. */
  readonly buffer: Tensor | null;
  /** Whether a backward pass would have run hooks. One inside the function refuses to: it has brought nothing here. */
  readonly hadHooks: boolean;
  /** Where it lay: all of a storage of its own, or this one, which others may look at too, such as a flat buffer. */
  readonly within: Storage | null;
}

/** The gradients that a function looks at or replaces while it is written down. */
export class TracedGradients {
  readonly #touched = new Map<Tensor, TouchedGradient>();
  /** What leaves had as gradients until others were put in their places. */
  readonly taken = new Set<Storage>();
  readonly #leaves = new Map<Storage, Tensor>();
  /** Of these, those that were looked at by other handles too when the function found them. */
  readonly #shared = new Set<Storage>();

  get touched(): TouchedGradient[] {
    return [...this.#touched.values()];
  }

  /** The leaf whose gradient the function has found there, all of a storage; undefined for none. */
  leafOf(storage: Storage): Tensor | undefined {
    return this.#leaves.get(storage);
  }

  /** The gradient of a leaf is looked at or replaced; ops have taken handles to the `used` storages before. */
  touch(leaf: Tensor, before: Tensor | null, used: { has(storage: Storage): boolean }): void {
    if (this.#touched.has(leaf)) return;
    const isPart = before !== null && !before.isDisposed && !fillsStorage(before);
    const { gradientBuffer: buffer, hasGradientHooks: hadHooks } = leaf;
    this.#touched.set(leaf, { leaf, before, buffer, hadHooks, within: isPart ? before.storage : null });
    if (!before || isPart) return;
    const { storage } = before;
    if (storage.handles > 1) this.#shared.add(storage);
    const other = this.#leaves.get(storage);
    if (other) this.#pin(other);
    // An op may have taken another handle to it before.
    if (other || used.has(storage)) this.#pin(leaf);
    else this.#leaves.set(storage, leaf);
  }

  /** An op takes `x`, which lies in the gradient of a leaf, maybe by another handle than the one that the function found. */
  use(x: Tensor, leaf: Tensor): void {
    if (this.#shared.has(x.storage) && x !== this.#touched.get(leaf)!.before) this.#pin(leaf);
  }

  /** Ties the program to the gradient's very storage: another handle to that would not move to the leaf's next gradient. */
  #pin(leaf: Tensor): void {
    const touched = this.#touched.get(leaf)!;
    this.#touched.set(leaf, { ...touched, within: touched.before!.storage });
  }
}

/** Whether a tensor is all of its storage. */
export function fillsStorage({ isContiguous, byteLength, storage, offset }: Tensor): boolean {
  return isContiguous && offset === 0 && byteLength === storage.byteLength;
}
