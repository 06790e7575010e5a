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
