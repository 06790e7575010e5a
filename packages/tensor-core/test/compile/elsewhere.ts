import * as t from '../../src/index.ts';

// Ops called from a file of their own, which messages then name.

/** Adds one to `x`. */
export function increment(x: t.Tensor): void {
  t.addInPlace(x, t.onesLike(x));
}

/** A tensor that no scope frees. */
export function keptExp(x: t.Tensor): t.Tensor {
  return t.keep(t.exp(x));
}
