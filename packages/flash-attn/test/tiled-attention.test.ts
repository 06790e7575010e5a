import { cast, checkGradients, device, fromTypedArray, ones, pow, scope, sum } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type TiledAttentionOptions, flashAttentionWithLse, tiledAttention } from '../src/index.ts';
import { type Attention, expectAccurate } from './attempt.ts';
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

  it('has the gradients of finite differences', () => {
    const operands = [2, 1, 1].map((heads, i) =>
      fromTypedArray(normals(15 * heads, 60 + i), [1, heads, 5, 3]),
    );
    const blockSize = { queries: 2, keys: 3 };
    checkGradients((q, k, v) => pow(tiledAttention(q!, k!, v!, { causal: true, blockSize }), 2), operands);
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
