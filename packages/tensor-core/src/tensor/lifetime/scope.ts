import { refuseAsync, refusePromise, wrongArgument } from '@roofline/cuda/host';

/** What a scope owns and frees: the base of `Tensor`. */
export abstract class Scoped {
  /** The scope that will dispose this; null outside of all; see `keep`. @internal */
  scope: Scope | null;

  constructor() {
    this.scope = current;
    current?.own(this);
  }

  abstract dispose(): void;

  /** The scope at whose end this is disposed: its own, or that of another that disposes it. @internal */
  get endsWith(): Scope | null {
    return this.scope;
  }

  /** Called when it leaves all scopes (false) or enters one again (true). */
  protected abstract ownershipChanged(isOwned: boolean): void;

  /** Moves it to another scope, or out of all of them (null); see `keep`. @internal */
  moveTo(scope: Scope | null): void {
    const before = this.scope;
    if (before === scope) return;
    this.scope = scope;
    scope?.own(this);
    if ((before === null) !== (scope === null)) this.ownershipChanged(scope !== null);
  }
}

/** The tensors to free when a `scope` call ends. */
export class Scope {
  readonly parent: Scope | null;
  /** May still list some that have left; null for none. */
  #owned: Scoped[] | null = null;

  constructor(parent: Scope | null) {
    this.parent = parent;
  }

  own(scoped: Scoped): void {
    if (this.#owned === null) this.#owned = [scoped];
    else this.#owned.push(scoped);
  }

  /** Frees what this scope still owns. */
  dispose(): void {
    const owned = this.#owned;
    if (owned === null) return;
    this.#owned = null;
    for (const scoped of owned) if (scoped.scope === this) scoped.dispose();
  }
}

let current: Scope | null = null;

/** The innermost scope that is running; null outside every scope. */
export function currentScope(): Scope | null {
  return current;
}

/**
 * Runs `fn` and frees every tensor made inside that it neither returns nor `keep`s. Returned tensors, also in arrays and plain
 * objects, pass to the enclosing scope. What the tape saved lives on until the backward pass has used it. `fn` must not be
 * async, because its tensors could not be told from its caller's: that throws a RooflineError, and frees what was made.
 *
 * @example
 * ```ts
 * import { add, randn, scope, sum } from '@roofline/tensor-core';
 *
 * const x = randn([1000]);
 * const total = scope(() => sum(add(x, x))); // the sum of x and x is freed here
 * console.log(total.item());
 * ```
 */
export function scope<T>(fn: () => T): T {
  refuseAsync('scope', fn);
  const entered = new Scope(current);
  current = entered;
  try {
    const result = fn();
    handOver(result, entered);
    return result;
  } finally {
    current = entered.parent;
    entered.dispose();
  }
}

/** Takes `tensor` out of every scope: from now on its owner must dispose of it. */
export function keep<T extends Scoped>(tensor: T): T {
  if (!(tensor instanceof Scoped)) throw wrongArgument('keep', 'what it keeps', 'a tensor', tensor);
  tensor.moveTo(null);
  return tensor;
}

/** Moves all tensors in `value` to the enclosing scope; none, if there is a promise in it. */
function handOver(value: unknown, from: Scope): void {
  if (value instanceof Scoped) {
    if (value.endsWith === from) value.moveTo(from.parent);
  } else if (typeof value === 'object' && value !== null) {
    const held = heldBy(value);
    for (const scoped of held) if (scoped.scope === from) scoped.moveTo(from.parent);
    // After all others: the gradient of a leaf that stays, stays with it.
    for (const scoped of held) if (scoped.endsWith === from) scoped.moveTo(from.parent);
  }
}

/** What arrays and plain objects hold, at any depth; they may be circular. */
function heldBy(value: object): Scoped[] {
  const found: Scoped[] = [];
  const reached = new Set<object>([value]);
  for (const container of reached) {
    if (container instanceof Scoped) found.push(container);
    else if (Array.isArray(container) || isPlain(refusePromise('scope', container))) {
      for (const item of Object.values(container) as unknown[]) {
        if (typeof item === 'object' && item !== null) reached.add(item);
      }
    }
  }
  return found;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
