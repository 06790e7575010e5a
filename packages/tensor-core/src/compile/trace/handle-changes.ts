import { CompileError } from '../../base/errors.ts';
import { formatShape } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** What a function does to handles that it found outside, other than to their elements: replays run only ops. */
export class HandleChanges {
  readonly #written = new Set<Tensor>();
  /** Leaves changed by `requiresGrad_`, and whether they required a gradient before. */
  readonly #requirements = new Map<Tensor, boolean>();

  historyWritten(target: Tensor): void {
    this.#written.add(target);
  }

  requirementSet(leaf: Tensor, before: boolean): void {
    if (!this.#requirements.has(leaf)) this.#requirements.set(leaf, before);
  }

  /** Called after the function: throws a CompileError for a change that remains, or a gradient of an argument copy. */
  check(argumentCopies: readonly Tensor[]): void {
    for (const { grad, shape } of argumentCopies) {
      if (grad === null) continue;
      throw new CompileError(
        `compile: an argument ${formatShape(shape)} gets a gradient, which its caller's tensor would not have; return the ` +
          'gradient, or pass a leaf that requires one.',
      );
    }
    for (const { isDisposed, shape } of this.#written) {
      if (isDisposed) continue;
      throw new CompileError(
        `compile: a write leaves a history in a tensor ${formatShape(shape)} that the function found outside, and a replay ` +
          'records none: write inside noGrad(), or write detach() of it, or make the tensor inside.',
      );
    }
    for (const [leaf, before] of this.#requirements) {
      if (leaf.isDisposed || leaf.requiresGrad === before) continue;
      throw new CompileError(
        `compile: requiresGrad_() changes a tensor ${formatShape(leaf.shape)} that the function found, which replays would ` +
          'not; call it outside.',
      );
    }
  }
}
