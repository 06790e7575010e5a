import type { Storage } from '../tensor/storage/storage.ts';
import { watchedChanges } from '../tensor/storage/watched-changes.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { hasSuchGradient } from './graph/gradient-results.ts';
import type { ProgramStorage } from './graph/graph.ts';
import type { Dependency, Trace } from './trace/trace.ts';
import type { TouchedGradient } from './trace/traced-gradients.ts';
import { isHandedOver } from './trace/traced.ts';

/** Whether a handle that the function found required a gradient. */
interface Requirement {
  readonly handle: Tensor;
  readonly requiresGrad: boolean;
}

/**
 * What a program depends on beside its arguments. It is asked before each run, and looks at its hundreds of parameters only
 * where something has happened to one of some program: their storages are watched.
 */
export class CapturedState {
  readonly #dependencies: readonly Dependency[];
  /** Those to captured storages that ops took, and the leaves whose gradients were looked at. */
  readonly #handles: readonly Tensor[];
  /** Of the handles that ops took, and of the leaves that were asked: of some of those ops took views alone. */
  readonly #requirements: readonly Requirement[];
  readonly #touched: readonly TouchedGradient[];
  readonly #storages: readonly Storage[];
  /** Leaves whose gradients the program works on, each in a storage of its own, wherever that lies. */
  readonly #leaves: readonly Tensor[];
  /** What it watches: whoever gives up the program unwatches them. */
  readonly watched: ReadonlySet<Storage>;
  /** The counts of `watchedChanges` at which all was well. */
  #aliveAt = -1;
  #handlesSameAt = -1;
  #gradientsSameAt = -1;

  constructor(trace: Trace, storages: readonly ProgramStorage[]) {
    this.#dependencies = trace.dependencies;
    this.#touched = trace.gradients.touched;
    const leaves = this.#touched.map(({ leaf }) => leaf);
    // A gradient may come anew with each backward pass, where a flat buffer has a place for it.
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

  /** False once a captured tensor has been freed or replaced: nobody but the program has it. */
  get isAlive(): boolean {
    if (this.#aliveAt === watchedChanges.handles) return true;
    const isAlive = this.#storages.every(({ handles }) => handles > 0);
    if (isAlive) this.#aliveAt = watchedChanges.handles;
    return isAlive;
  }

  /** Whether all is as it was; asked of those that are alive. */
  get isSame(): boolean {
    return this.#areDependenciesSame() && this.#areHandlesSame() && this.#areGradientsSame();
  }

  #areDependenciesSame(): boolean {
    // As Object.is says, for 0 is not -0 and NaN is NaN; it is slower, and mostly not asked.
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

  /** Whether no gradient lies where another one or what the program has captured does. */
  #areGradientsApart(): boolean {
    const gradients = new Set(this.#leaves.map(({ grad }) => grad!.storage));
    if (gradients.size < this.#leaves.length) return false;
    return gradients.size === 0 || !this.#storages.some((storage) => gradients.has(storage));
  }
}

/** Views that the function made are gone, or its caller's. */
function isFound(handle: Tensor): boolean {
  return !handle.isDisposed && !isHandedOver(handle);
}

function isRequirementSame({ handle, requiresGrad }: Requirement): boolean {
  return (!handle.isDisposed && handle.requiresGrad) === requiresGrad;
}
