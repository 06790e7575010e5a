import { describe, it } from 'vitest';
import { device } from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { flashAttentionWithLse } from '../src/index.ts';
import { expectAccurate } from './attempt.ts';
import { describeProblem, randomProblem } from './problems.ts';
const emu = openEmulatedDevice();
for (const [name, where, count, longest] of [['cpu', device('cpu'), 60, 150], ['emulated', emu, 12, 80]] as const)
describe('flash ' + name, () => {
  const problems = Array.from({ length: count }, (_, i) => randomProblem(i, longest, name === 'cpu' ? [8, 16, 20, 64] : [8, 16]));
  for (const p of problems) for (const dtype of ['float64', 'float32', 'bfloat16', 'float16'] as const)
    it(`${p.seed} ${dtype} ${describeProblem(p)}`, () => expectAccurate((q, k, v, { causal, scale }) => flashAttentionWithLse(q, k, v, scale === undefined ? { causal } : { causal, scale }), p, dtype, where));
});
