import { type Tensor, cast, device, full, fromTypedArray, mul, scope, sum } from '@roofline/tensor-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flashAttentionWithLse, getFlashKernels, setFlashKernels } from '../../src/index.ts';
import { type Attention, attempt, expectAccurate } from '../attempt.ts';
import { type AttentionProblem, describeProblem, normals, operandsOf, randomProblem } from '../problems.ts';

const deterministic: Attention = (q, k, v, { causal, scale }) =>
  flashAttentionWithLse(q, k, v, { causal, deterministic: true, ...(scale === undefined ? {} : { scale }) });

const problemOf = (changes: Partial<AttentionProblem>): AttentionProblem => ({
  ...{ batch: 2, heads: 4, keyHeads: 2, queries: 300, keys: 300, headDimension: 64 },
  ...{ causal: true, magnitude: 1, storage: ['bnhd', 'bhnd', 'bnhd'], seed: 9 },
  ...changes,
});

/** Where tiles of queries and of keys end, rows that see nothing, and blocks that others wait for. */
const edges = [
  problemOf({ queries: 1 }),
  problemOf({ keys: 1 }),
  problemOf({ queries: 1, keys: 1 }),
  problemOf({ queries: 128, keys: 128 }),
  problemOf({ queries: 129, keys: 257 }),
  problemOf({ queries: 700, keys: 129 }),
  problemOf({ queries: 700, keys: 129, causal: false }),
  problemOf({ queries: 1500, keys: 1500, heads: 6, keyHeads: 1 }),
  problemOf({ storage: ['expanded', 'sliced', 'transposed'] }),
];

// On another GPU than Hopper other kernels run these.
describe("Hopper's backward pass", () => {
  const before = getFlashKernels();
  beforeAll(() => setFlashKernels('auto'));
  afterAll(() => setFlashKernels(before));

  const random = Array.from({ length: 40 }, (_, i) =>
    randomProblem(700 + i, 600, [8, 48, 64, 72, 80, 96, 112, 128]),
  );
  describe.each(['bfloat16', 'float16'] as const)('in %s', (dtype) => {
    it.each([...edges, ...random].map((problem) => [describeProblem(problem), problem] as const))(
      'is right, and the same twice, if it must be deterministic: %s',
      (_, problem) => {
        expectAccurate(deterministic, problem, dtype, device('cuda'));
        const run = () =>
          scope(() => attempt(deterministic, problem, operandsOf(problem, dtype, device('cuda'))));
        expect(run()).toEqual(run());
      },
    );
  });

  /** Gradients of bfloat16 operands [1, 4 or 2 heads, length, d], of which one may have `poison` in its last head. */
  function gradients(length: number, headDimension: number, poisoned?: { operand: number; poison: number }) {
    return scope(() => {
      const leaves = [4, 2, 2].map((heads, i) => {
        const values = normals(heads * length * headDimension, 30 + i);
        if (poisoned?.operand === i) values[values.length - 1] = poisoned.poison;
        const x = fromTypedArray(values, [1, heads, length, headDimension]);
        return cast(x, 'bfloat16').to(device('cuda')).requiresGrad_();
      });
      const [q, k, v] = leaves as [Tensor, Tensor, Tensor];
      const { output } = flashAttentionWithLse(q, k, v, { causal: true, deterministic: true });
      sum(mul(output, full(output.shape, 0.5, { dtype: 'bfloat16', device: device('cuda') }))).backward();
      return leaves.map((x) => x.grad!.toFlatArray());
    });
  }

  it.each([NaN, Infinity, -Infinity])('keeps a %s inside its head', (poison) => {
    const clean = gradients(333, 64);
    for (const operand of [0, 1, 2]) {
      const poisoned = gradients(333, 64, { operand, poison });
      // Of q the last head, or the last two, which share the last of k and v.
      const untouched = [operand === 0 ? 3 / 4 : 1 / 2, 1 / 2, 1 / 2];
      untouched.forEach((share, i) => {
        const count = clean[i]!.length * share;
        expect(poisoned[i]!.slice(0, count)).toEqual(clean[i]!.slice(0, count));
      });
    }
  });

  it('finds its counters at zero, whatever the call before left behind', () => {
    const [long, short] = [gradients(900, 80), gradients(130, 80)];
    expect(gradients(900, 80)).toEqual(long);
    expect(gradients(130, 80)).toEqual(short);
  });
});
