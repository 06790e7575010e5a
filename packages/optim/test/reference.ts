/** The optimizers' rules, written once more in float64 over plain arrays, for tests to hold the kernels against. */

export interface AdamWReference {
  readonly learningRate: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
}

export interface AdamWArrays {
  readonly p: Float64Array;
  readonly m: Float64Array;
  readonly v: Float64Array;
}

/** Algorithm 2 of Loshchilov & Hutter 2019, step number `t`, in the order of torch.optim.AdamW. */
export function referenceAdamW(
  { p, m, v }: AdamWArrays,
  g: ArrayLike<number>,
  t: number,
  { learningRate, betas: [beta1, beta2], eps, weightDecay }: AdamWReference,
): void {
  for (let i = 0; i < p.length; i++) {
    p[i] = p[i]! * (1 - learningRate * weightDecay);
    m[i] = beta1 * m[i]! + (1 - beta1) * g[i]!;
    v[i] = beta2 * v[i]! + (1 - beta2) * g[i]! ** 2;
    const denominator = Math.sqrt(v[i]!) / Math.sqrt(1 - beta2 ** t) + eps;
    p[i] = p[i]! - ((learningRate / (1 - beta1 ** t)) * m[i]!) / denominator;
  }
}

export interface SGDReference {
  readonly learningRate: number;
  readonly momentum: number;
  readonly weightDecay: number;
  readonly nesterov: boolean;
}

/** One step of torch.optim.SGD without dampening; `b` is the momentum buffer, of zeros before the first step. */
export function referenceSGD(
  p: Float64Array,
  b: Float64Array,
  g: ArrayLike<number>,
  { learningRate, momentum, weightDecay, nesterov }: SGDReference,
): void {
  for (let i = 0; i < p.length; i++) {
    const gradient = g[i]! + weightDecay * p[i]!;
    b[i] = momentum * b[i]! + gradient;
    p[i] = p[i]! - learningRate * (nesterov ? gradient + momentum * b[i]! : b[i]!);
  }
}

/** The norm of all values as one vector. */
export function referenceNorm(vectors: readonly ArrayLike<number>[]): number {
  let sum = 0;
  for (const vector of vectors) for (let i = 0; i < vector.length; i++) sum += vector[i]! ** 2;
  return Math.sqrt(sum);
}

/**
 * The largest difference between elements, in float32 roundings: half a unit in the last place of the expected
 * value, or of 1 for smaller ones, which come from terms of that size. NaN if one of the two is NaN alone.
 */
export function worstRoundings(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Infinity;
  let worst = 0;
  for (let i = 0; i < expected.length; i++) {
    if (Object.is(actual[i], expected[i])) continue;
    const difference = Math.abs(actual[i]! - expected[i]!) / Math.max(1, Math.abs(expected[i]!));
    worst = difference <= worst ? worst : difference;
  }
  return worst * 2 ** 24;
}

/** ‖a - b‖ / ‖b‖; 0 where nothing differs. */
export function relativeError(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [difference, size] = [0, 0];
  for (let i = 0; i < b.length; i++) {
    difference += (a[i]! - b[i]!) ** 2;
    size += b[i]! ** 2;
  }
  return difference === 0 ? 0 : Math.sqrt(difference / size);
}

/** Numbers in [-1, 1), the same for the same seed. */
export function pseudoRandom(length: number, seed: number): Float32Array {
  let state = seed + 1;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}
