import { dependOn } from '@roofline/tensor-core';
import type { ShardedUnit } from './sharded-unit.ts';

/**
 * The order in which backward passes come to units, so that each is gathered while the one before it computes. It is that of the
 * last pass, whatever the model recomputes, and the same on all ranks.
 */
export class BackwardOrder {
  #last: readonly ShardedUnit[] = [];
  readonly #read = () => this.#last;
  #running: ShardedUnit[] = [];

  /** The unit that a pass comes to first; undefined before any. */
  get first(): ShardedUnit | undefined {
    return dependOn(this.#read)[0];
  }

  /** The pass has come to a unit: the one after it, undefined where the last pass had come to another, or to none. */
  after(unit: ShardedUnit): ShardedUnit | undefined {
    const last = dependOn(this.#read);
    if (this.#running.at(-1) !== unit) this.#running.push(unit);
    const at = this.#running.length;
    return last[at - 1] === unit ? last[at] : undefined;
  }

  /** A pass begins anew; what one that failed has left does not count. */
  begin(): void {
    this.#running = [];
  }

  /** A pass has ended. */
  end(): void {
    const [last, running] = [this.#last, this.#running];
    // The same object where nothing has changed: compiled functions depend on it.
    if (running.length !== last.length || running.some((unit, i) => unit !== last[i])) this.#last = running;
    this.#running = [];
  }
}
