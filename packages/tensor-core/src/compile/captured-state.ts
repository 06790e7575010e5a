import type { Storage } from '../tensor/storage/storage.ts';
import { watchedChanges } from '../tensor/storage/watched-changes.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { hasSuchGradient } from './graph/gradient-results.ts';
import type { GraphStorage } from './graph/graph.ts';
import type { Dependency, Trace } from './trace/trace.ts';
import type { TouchedGradient } from './trace/traced-gradients.ts';
import { isHandedOver } from './trace/traced.ts';

/** Whether a handle that the function found outside required a gradient. */
interface Requirement {
  readonly handle: Tensor;
  readonly requiresGrad: boolean;
}

/**
 * What a specialization depends on besides its arguments. It is checked before each run, and walks its hundreds of parameters
 * only after something has happened to a watched storage, of whichever specialization.
 */
export class CapturedState {
  readonly #dependencies: readonly Dependency[];
  /** Handles to captured storages that ops took, and leaves whose gradients were read. */
  readonly #handles: readonly Tensor[];
  /** Of the handles that ops took, and of leaves that were asked; of some of these ops took only views. */
  readonly #requirements: readonly Requirement[];
  readonly #touched: readonly TouchedGradient[];
  readonly #storages: readonly Storage[];
  /** Leaves whose gradients the graph works on, each in a storage of its own, wherever that is. */
  readonly #leaves: readonly Tensor[];
  /** The storages that it watches; the owner unwatches them on disposal. */
  readonly watched: ReadonlySet<Storage>;
  /** The counts of `watchedChanges` at the last check that passed. */
  #aliveAt = -1;
  #handlesSameAt = -1;
  #gradientsSameAt = -1;

  constructor(trace: Trace, storages: readonly GraphStorage[]) {
    this.#dependencies = trace.dependencies;
    this.#touched = trace.gradients.touched;
    const leaves = this.#touched.map(({ leaf }) => leaf);
    // Each backward pass may make a new handle to a gradient that lies in a flat buffer.
    const gradients = new Set(this.#touched.flatMap(({ before }) => before ?? []));
    this.#handles = [...trace.captured.difference(gradients).union(new Set(leaves))].filter(isFound);
    this.#requirements = [...trace.captured.union(trace.askedLeaves)]
      .filter(isFound)
      .map((handle) => ({ handle, requiresGrad: handle.requiresGrad }));
    this.#storages = storages.flatMap(({ source }) => (source.kind === 'captured' ? [source.storage] : []));
    this.#leaves = storages.flatMap(({ source }) => (source.kind === 'gradient' ? [source.leaf] : []));
    const watched = [...leaves, ...this.#requirements.map(({ handle }) => handle)];
    this.watched = new Set([...this.#storages, ...watched.map(({ storage }) => storage)]);
    for (const storage of this.watched) storage.watch();
  }

  /** False once a captured tensor has been freed or replaced: the specialization alone still holds it. */
  get isAlive(): boolean {
    if (this.#aliveAt === watchedChanges.handles) return true;
    const isAlive = this.#storages.every(({ handles }) => handles > 0);
    if (isAlive) this.#aliveAt = watchedChanges.handles;
    return isAlive;
  }

  /** Whether everything is as it was; call it only while `isAlive`. */
  get isSame(): boolean {
    return this.#areDependenciesSame() && this.#areHandlesSame() && this.#areGradientsSame();
  }

  #areDependenciesSame(): boolean {
    // Object.is tells 0 from -0 and takes NaN for NaN, but is slower, so it decides only where it matters.
    for (const { read, value } of this.#dependencies) {
      const now = read();
      if ((now !== value || now === 0) && !Object.is(now, value)) return false;
    }
    return true;
  }

  #areHandlesSame(): boolean {
    if (this.#handlesSameAt === watchedChanges.handles) return true;
    const areSame =
      this.#handles.every(({ isDisposed }) => !isDisposed) && this.#requirements.every(isRequirementSame);
    if (areSame) this.#handlesSameAt = watchedChanges.handles;
    return areSame;
  }

  #areGradientsSame(): boolean {
    if (this.#gradientsSameAt === watchedChanges.gradients) return true;
    const areSame = this.#touched.every(hasSuchGradient) && this.#areGradientsApart();
    if (areSame) this.#gradientsSameAt = watchedChanges.gradients;
    return areSame;
  }

  /** Whether no two gradients share a storage, and none lies in a captured one. */
  #areGradientsApart(): boolean {
    const gradients = new Set(this.#leaves.map(({ grad }) => grad!.storage));
    if (gradients.size < this.#leaves.length) return false;
    return !this.#storages.some((storage) => gradients.has(storage));
  }
}

/** Views that the function itself made are disposed of by now, or were handed to its caller. */
function isFound(handle: Tensor): boolean {
  return !handle.isDisposed && !isHandedOver(handle);
}

function isRequirementSame({ handle, requiresGrad }: Requirement): boolean {
  return (!handle.isDisposed && handle.requiresGrad) === requiresGrad;
}
