import {
  type DType,
  type Tensor,
  abs,
  add,
  cast,
  causalMask,
  concat,
  device,
  exp,
  expand,
  fromTypedArray,
  matmul,
  maximum,
  mul,
  reshape,
  scope,
  slice,
  sub,
  sum,
  transpose,
  unsqueeze,
} from '@roofline/tensor-core';
import { expect } from 'vitest';
import type { AttentionWithLse } from '../src/index.ts';
import { plainAttention } from '../src/reference.ts';
import { type AttentionProblem, normals, operandsOf } from './problems.ts';

/** Half the distance between 1 and the next number of a dtype. */
export const unitRoundoff: Partial<Record<DType, number>> = {
  float64: 2 ** -53,
  float32: 2 ** -24,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};

export type Attention = (q: Tensor, k: Tensor, v: Tensor, problem: AttentionProblem) => AttentionWithLse;

/** What attention gave: the output, the log-sum-exp and the gradients of q, k and v. */
export interface Attempt {
  readonly output: number[];
  readonly lse: number[];
  readonly gradQ: number[];
  readonly gradK: number[];
  readonly gradV: number[];
}

/** Runs attention, and backward for fixed gradients of the output and of those log-sum-exps that are finite. */
export function attempt(
  attention: Attention,
  problem: AttentionProblem,
  operands: readonly Tensor[],
): Attempt {
  return scope(() => {
    const leaves = operands.map((x) => x.detach().requiresGrad_());
    const [q, k, v] = leaves as [Tensor, Tensor, Tensor];
    const { output, lse } = attention(q, k, v, problem);
    const weighted = (x: Tensor, seed: number) => mul(x, likeIt(x, normals(x.size, seed)));
    const finite = lse.toFlatArray();
    const seen = likeIt(
      lse,
      normals(lse.size, 72).map((value, i) => (Number.isFinite(finite[i]!) ? value : 0)),
    );
    // A row that sees no key has no gradient: -∞ times 0 would be NaN.
    const kept = finite.every(Number.isFinite) ? sum(mul(lse, seen)) : null;
    const loss = sum(cast(weighted(output, 71), lse.dtype));
    (kept ? add(loss, kept) : loss).backward();
    return {
      output: output.toFlatArray(),
      lse: finite,
      gradQ: q.grad!.toFlatArray(),
      gradK: k.grad!.toFlatArray(),
      gradV: v.grad!.toFlatArray(),
    };
  });
}

function likeIt({ shape, dtype, device: where }: Tensor, values: Float64Array): Tensor {
  return cast(fromTypedArray(values, shape), dtype).to(where);
}

/** The plain composition, with the problem's settings. */
export const plain: Attention = (q, k, v, { causal, scale = 1 / Math.sqrt(q.shape[3]!) }) =>
  plainAttention([q, k, v], { causal, scale });

/**
 * The sizes of what the gradients of q and k are differences of: of dS = P ∘ (dP - Δ) with Δ = Σ dO ∘ O, where both sides
 * are as good as equal if one weight dominates. The plain composition has Δ = Σ P ∘ dP, whose rounding is then dP's own.
 */
function cancellingTerms(
  problem: AttentionProblem,
  operands: readonly Tensor[],
): { gradQ: number[]; gradK: number[] } {
  return scope(() => {
    const [q, k, v] = operands as [Tensor, Tensor, Tensor];
    const { causal, heads, keyHeads, scale = 1 / Math.sqrt(q.shape[3]!) } = problem;
    const repeated = (x: Tensor) => {
      const [batch, , ...rest] = x.shape as [number, number, number, number];
      return reshape(expand(unsqueeze(x, 2), [batch, keyHeads, heads / keyHeads, ...rest]), [
        batch,
        heads,
        ...rest,
      ]);
    };
    const [keys, values] = [repeated(k), repeated(v)];
    const { output, lse } = plainAttention([q, k, v], { causal, scale });
    const products = matmul(q, transpose(keys), { scale });
    const scores = causal ? causalMask(products) : products;
    const weights = exp(sub(scores, unsqueeze(maximum(lse, -1e300), -1)));
    const gradO = abs(likeIt(output, normals(output.size, 71)));
    const delta = sum(mul(gradO, abs(output)), { dims: -1, keepDims: true });
    const terms = mul(mul(weights, add(matmul(gradO, transpose(abs(values))), delta)), Math.abs(scale));
    return {
      gradQ: matmul(terms, abs(keys)).toFlatArray(),
      gradK: matmul(transpose(terms), abs(q)).toFlatArray(),
    };
  });
}

function norm(values: readonly number[]): number {
  return Math.sqrt(values.reduce((total, value) => total + value ** 2, 0));
}

const names = ['output', 'lse', 'gradQ', 'gradK', 'gradV'] as const;

/** The plain composition with the features of q and k in an order that begins at `first`: other roundings. */
function plainFrom(first: number): Attention {
  const turned = (x: Tensor) => concat([slice(x, 3, first), slice(x, 3, 0, first)], 3);
  return (q, k, v, problem) => plain(turned(q), turned(k), v, problem);
}

/** How far the plain composition is off in a dtype: rounding is chance, so the most of three orders. */
function plainErrors(problem: AttentionProblem, dtype: DType): Record<(typeof names)[number], number> {
  const operands = operandsOf(problem, dtype, device('cpu'));
  const exact = attempt(plain, problem, operands.map(inFloat64));
  const third = Math.max(1, Math.floor(problem.headDimension / 3));
  const tried = [plain, plainFrom(third), plainFrom(2 * third)].map((order) =>
    attempt(order, problem, operands),
  );
  const most = (name: (typeof names)[number]) =>
    Math.max(...tried.map((result) => relativeError(result[name], exact[name])));
  return {
    output: most('output'),
    lse: most('lse'),
    gradQ: most('gradQ'),
    gradK: most('gradK'),
    gradV: most('gradV'),
  };
}

function inFloat64(x: Tensor): Tensor {
  return cast(x, 'float64');
}

/**
 * Holds attention on one device to the plain composition in float64: the error of the output, of the log-sum-exp and of
 * each gradient is at most twice that of the plain composition in the same dtype (three times in float64, where nothing
 * is more exact than the plain composition), and a rounding on either side of it, or of the terms that it is a
 * difference of.
 */
export function expectAccurate(
  attention: Attention,
  problem: AttentionProblem,
  dtype: DType,
  where = device('cpu'),
): void {
  scope(() => {
    const wide = operandsOf(problem, dtype, device('cpu')).map(inFloat64);
    const exact = attempt(plain, problem, wide);
    const ours = attempt(attention, problem, operandsOf(problem, dtype, where));
    // The error of float64 is taken from float32's, in units in the last place.
    const ownDType = dtype === 'float64' ? 'float32' : dtype;
    const own = plainErrors(problem, ownDType);
    const unit = unitRoundoff[dtype]!;
    const times = ((dtype === 'float64' ? 3 : 2) * unit) / unitRoundoff[ownDType]!;
    const sides = dtype === 'float64' ? 2 : 1;
    const terms = cancellingTerms(problem, wide);
    for (const name of names) {
      const roundings =
        name === 'gradQ' || name === 'gradK' ? (4 * norm(terms[name])) / (norm(exact[name]) || 1) : 2;
      const bound = times * own[name] + sides * roundings * unit;
      const error = relativeError(ours[name], exact[name]);
      expect(error, `${name}: error ${error}, bound ${bound}`).toBeLessThanOrEqual(bound);
    }
  });
}

/** ‖a - b‖ / ‖b‖; NaN when either holds one where the other does not. Infinities must be equal. */
export function relativeError(actual: readonly number[], expected: readonly number[]): number {
  if (actual.length !== expected.length) throw new Error(`${actual.length} values for ${expected.length}`);
  let difference = 0;
  expected.forEach((value, i) => {
    if (Object.is(value, actual[i]) || value === actual[i]) return;
    difference += (actual[i]! - value) ** 2;
  });
  return difference === 0 ? 0 : Math.sqrt(difference) / (norm(expected.filter(Number.isFinite)) || 1);
}
