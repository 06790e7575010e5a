import type { Tensor } from './tensor.ts';

/** The tensors to free when a `scope` call ends. */
export class Scope {
  readonly parent: Scope | null;
  readonly tensors: Tensor[] = [];

  constructor(parent: Scope | null) {
    this.parent = parent;
  }
}

let current: Scope | null = null;

/** The innermost scope that is running; null outside every scope. */
export function currentScope(): Scope | null {
  return current;
}

/**
 * Runs `fn` and frees every tensor made inside that it neither returns nor `keep`s. Tensors are found in
 * returned arrays and plain objects too, and pass to the enclosing scope. What the tape saved lives on until
 * the backward pass has used it. `fn` must not be async: its tensors could not be told from its caller's.
 */
export function scope<T>(fn: () => T): T {
  const entered = new Scope(current);
  current = entered;
  let result: T | undefined;
  try {
    result = fn();
    return result;
  } finally {
    current = entered.parent;
    handOver(result, entered);
    for (const tensor of entered.tensors) if (tensor.scope === entered) tensor.dispose();
  }
}

/** Takes `tensor` out of every scope: from now on it is its owner's to dispose. */
export function keep<T extends Tensor>(tensor: T): T {
  tensor.moveTo(null);
  return tensor;
}

function handOver(value: unknown, from: Scope): void {
  if (typeof value !== 'object' || value === null) return;
  if (isTensor(value)) {
    if (value.scope === from) value.moveTo(from.parent);
  } else if (Array.isArray(value)) {
    for (const item of value) handOver(item, from);
  } else if (Object.getPrototypeOf(value) === Object.prototype) {
    for (const item of Object.values(value)) handOver(item, from);
  } else if (value instanceof Promise) {
    throw new TypeError(
      'scope: the function returned a promise; a scope frees its tensors at once, so it must be synchronous.',
    );
  }
}

// By shape, not by class: importing the class here would make a cycle.
function isTensor(value: object): value is Tensor {
  return 'storage' in value && 'moveTo' in value;
}
