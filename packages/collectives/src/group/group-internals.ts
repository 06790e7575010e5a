import { type EffectOrder, RooflineError, type Tensor } from '@roofline/tensor-core';
import type { SymmetricMemory } from './backend.ts';
import type { MemoryCall } from './call-on-memory.ts';

/** What the ops of a group need of it, besides what users call. */
export interface GroupInternals {
  /** The group as compiled functions see it, which keep the order of its calls. */
  readonly programs: EffectOrder;
  /** What lets ranks reduce in each other's memory; null where none can. */
  readonly symmetricMemory: SymmetricMemory | null;
  /** Throws one of our errors, which names `op`, unless the group's collectives can take `x`. */
  checkInput(op: string, x: Tensor): void;
  /** Begins the calls of an op on memory, together. */
  startOnMemory(calls: readonly MemoryCall[]): void;
}

const internals = new WeakMap<object, GroupInternals>();

/** Said by a group as it is made. */
export function setInternals(group: object, of: GroupInternals): void {
  internals.set(group, of);
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, for what is no group. */
export function internalsOf(owner: string, group: object): GroupInternals {
  const found = internals.get(group);
  if (found) return found;
  throw new RooflineError('ARGUMENT', `${owner}: takes a process group, as initProcessGroup() gives it.`);
}
