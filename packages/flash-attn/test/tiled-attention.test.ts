import {
  type Tensor,
  cast,
  checkGradients,
  device,
  fromTypedArray,
  ones,
  pow,
  scope,
  sum,
  zeros,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type TiledAttentionOptions, flashAttentionWithLse, tiledAttention } from '../src/index.ts';
import { type Attention, expectAccurate } from './attempt.ts';
import { describeMasks } from './mask-cases.ts';
import { plainAttention } from '../src/reference.ts';
import { describeProblem, normals, randomProblem } from './problems.ts';

/** The tiled form with the log-sum-exp, which it does not give, of the op. */
const tiled: Attention = (q, k, v, { causal, scale, queries }) => {
  const settings = { causal, ...(scale === undefined ? {} : { scale }) };
  const blockSize = { queries: 1 + (queries % 37), keys: 24 };
  const { lse } = flashAttentionWithLse(q, k, v, settings);
  return { output: tiledAttention(q, k, v, { ...settings, blockSize }), lse };
};

describe('tiledAttention', () => {
  const problems = Array.from({ length: 12 }, (_, i) => randomProblem(400 + i, 80, [8, 20]));

  describe.each(['float64', 'float32', 'bfloat16'] as const)('in %s', (dtype) => {
    it.each(problems.map((problem) => [describeProblem(problem), problem] as const))(
      'is attention: %s',
      (_, problem) => expectAccurate(tiled, problem, dtype, device('cpu')),
    );
  });

  describe.each([
    { queries: 7, keys: 5 },
    { queries: 16, keys: 64 },
  ])('in tiles of $queries by $keys', (blockSize) => {
    describeMasks(
      (q, k, v, causal) => ({
        output: tiledAttention(q, k, v, { causal, scale: 1, blockSize }),
        lse: flashAttentionWithLse(q, k, v, { causal, scale: 1 }).lse,
      }),
      () => device('cpu'),
      {
        dtypes: ['float32', 'bfloat16'],
        queries: [1, 21],
        sizes: [
          [3, 17],
          [37, 80],
          [40, 30],
        ],
      },
    );
  });

  it('has the gradients of finite differences', () => {
    const operands = [2, 1, 1].map((heads, i) =>
      fromTypedArray(normals(15 * heads, 60 + i), [1, heads, 5, 3]),
    );
    const blockSize = { queries: 2, keys: 3 };
    checkGradients((q, k, v) => pow(tiledAttention(q!, k!, v!, { causal: true, blockSize }), 2), operands);
  });

  it('keeps a gradient of NaN to the keys that its query sees', () => {
    const [q, k, v] = [1, 2, 3].map((seed) =>
      fromTypedArray(normals(24, seed), [1, 1, 6, 4]).requiresGrad_(),
    ) as [Tensor, Tensor, Tensor];
    const gradient = Float64Array.from({ length: 24 }, (_, i) => (i === 4 * 2 ? NaN : 1));
    const blockSize = { queries: 3, keys: 6 };
    tiledAttention(q, k, v, { causal: true, blockSize }).backward(fromTypedArray(gradient, [1, 1, 6, 4]));
    const rows = [0, 1, 2, 3, 4, 5].map((row) =>
      k
        .grad!.toFlatArray()
        .slice(4 * row, 4 * row + 4)
        .every(Number.isFinite),
    );
    expect(rows).toEqual([false, false, false, true, true, true]);
  });

  it.each([
    ['queries', [1, 2, 0, 4], [1, 2, 3, 4]],
    ['keys', [1, 2, 3, 4], [1, 2, 0, 4]],
    ['heads', [1, 0, 3, 4], [1, 0, 3, 4]],
    ['sequences', [0, 2, 3, 4], [0, 2, 3, 4]],
  ])('is zeros of no %s, and so are its gradients', (_, shapeQ, shapeK) => {
    const operands = [shapeQ, shapeK, shapeK].map((shape) => ones(shape).requiresGrad_());
    const [q, k, v] = operands as [Tensor, Tensor, Tensor];
    const output = tiledAttention(q, k, v, { causal: true });
    sum(output).backward();
    expect(output.toArray()).toEqual(zeros(shapeQ).toArray());
    for (const operand of operands) expect(operand.grad!.toArray()).toEqual(zeros(operand.shape).toArray());
  });

  it.each([
    ['tiledAttention', (q: Tensor, k: Tensor, v: Tensor) => tiledAttention(q, k, v)],
    [
      'its reference',
      (...qkv: [Tensor, Tensor, Tensor]) => plainAttention(qkv, { causal: false, scale: 1 }).output,
    ],
  ])('weighs float64 scores that float32 could not hold: %s', (_, attention) => {
    const operand = (values: readonly number[]) =>
      fromTypedArray(Float64Array.from(values), [1, 1, values.length, 1]).requiresGrad_();
    const [q, k, v] = [operand([1e20]), operand([-1e20, -1e20, -2e20]), operand([1, 2, 3])];
    const output = attention(q, k, v);
    sum(output).backward();
    expect(output.item()).toBe(1.5);
    expect(v.grad!.toFlatArray()).toEqual([0.5, 0.5, 0]);
  });

  it('keeps no scores for the backward pass', () => {
    scope(() => {
      const x = cast(fromTypedArray(normals(2048, 8), [1, 1, 2048, 1]), 'float32').requiresGrad_();
      const cpu = device('cpu');
      const before = cpu.memoryStatistics().allocatedBytes;
      const output = tiledAttention(x, x, x);
      // The output, and two numbers a row; all scores would be 16 MiB.
      expect(cpu.memoryStatistics().allocatedBytes - before).toBeLessThan(64 * 1024);
      sum(output).backward();
    });
  });

  it.each([
    [{ blockSize: { queries: 0, keys: 4 } }, /blockSize.queries must be a whole number from 1, not 0/],
    [{ blockSize: { queries: 4, keys: 1.5 } }, /blockSize.keys must be a whole number from 1, not 1.5/],
    [{ deterministic: true }, /no option "deterministic"/],
  ])('refuses %j', (options, message) => {
    const x = ones([1, 1, 2, 2]);
    expect(() => tiledAttention(x, x, x, options as TiledAttentionOptions)).toThrow(message);
  });
});
