/**
 * Numbers that stand for what ops make: sums and products are those of integers modulo 2³², everything else is pseudo-random,
 * so that two computations give the same only if they are the same. Roundings are invisible.
 */
export type Symbol = number;

export const plus = (a: Symbol, b: Symbol): Symbol => (a + b) | 0;
export const minus = (a: Symbol, b: Symbol): Symbol => (a - b) | 0;
export const times = (a: Symbol, b: Symbol): Symbol => Math.imul(a, b);

/** A symbol of anything that can be serialized, and of other symbols. */
export function symbolOf(text: string, symbols: readonly Symbol[] = []): Symbol {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  for (const symbol of symbols) hash = mixed(hash ^ symbol);
  return mixed(hash);
}

/** By Murmur3. */
function mixed(value: number): Symbol {
  let x = value;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) + 0x9e3779b9) | 0;
}
