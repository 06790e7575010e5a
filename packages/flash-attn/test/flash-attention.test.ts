import {
  type Tensor,
  add,
  autocast,
  cast,
  checkGradients,
  device,
  empty,
  fromTypedArray,
  ones,
  pow,
  scope,
  sum,
  tensor,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  type FlashAttentionOptions,
  flashAttention,
  flashAttentionWithLse,
  tiledAttention,
} from '../src/index.ts';
import { describeFlash } from './flash-cases.ts';
import { describeMasks, expectMasked } from './mask-cases.ts';
import { normals, randomProblem } from './problems.ts';

const cpu = device('cpu');

describe('flashAttention on the CPU', () => {
  describeFlash(() => cpu, {
    problems: Array.from({ length: 20 }, (_, i) => randomProblem(i, 150, [8, 20, 64])),
    dtypes: ['float64', 'float32', 'float16', 'bfloat16'],
  });

  describeMasks(
    (q, k, v, causal) => flashAttentionWithLse(q, k, v, { causal, scale: 1 }),
    () => cpu,
    {
      dtypes: ['float64', 'float32', 'float16', 'bfloat16'],
      queries: [1, 16, 70],
      sizes: [
        [3, 17],
        [37, 80],
        [70, 40],
      ],
    },
  );

  // So many scores are two blocks of queries, and of keys; the first of 4,000 queries see no key.
  it.each([
    [4000, 1500],
    [2100, 2100],
  ])('ends its mask where it ends in several blocks, of %i queries and %i keys', (queries, keys) => {
    const attention = (q: Tensor, k: Tensor, v: Tensor, causal: boolean) =>
      flashAttentionWithLse(q, k, v, { causal, scale: 1 });
    expect(() => expectMasked(attention, [queries, keys], 'float32', cpu)).not.toThrow();
  });

  it.each([
    ['full', [1, 2, 3, 4], [1, 2, 5, 4], {}],
    ['causal, grouped', [1, 4, 5, 3], [1, 2, 5, 3], { causal: true }],
    ['with emptied rows', [2, 1, 6, 2], [2, 1, 3, 2], { causal: true, scale: -0.7 }],
  ] as const)('has the gradients of finite differences: %s', (_, shapeQ, shapeK, options) => {
    const operands = [shapeQ, shapeK, shapeK].map((shape: readonly number[], i) =>
      fromTypedArray(
        normals(
          shape.reduce((product, length) => product * length, 1),
          90 + i,
        ),
        shape,
      ),
    );
    checkGradients((q, k, v) => pow(flashAttention(q!, k!, v!, options), 2), operands);
  });

  it('has a gradient of its log-sum-exp', () => {
    const operands = [0, 1, 2].map((i) => fromTypedArray(normals(24, 40 + i), [1, 2, 4, 3]));
    checkGradients((q, k, v) => flashAttentionWithLse(q!, k!, v!, { causal: true }).lse, operands);
    checkGradients((q, k, v) => {
      const { output, lse } = flashAttentionWithLse(q!, k!, v!);
      return add(sum(output), sum(pow(lse, 2)));
    }, operands);
  });

  it('is a mean of the values where all scores are equal', () => {
    const { output, lse } = flashAttentionWithLse(
      ones([1, 1, 2, 1]),
      ones([1, 1, 4, 1]),
      tensor([[[[1], [2], [3], [6]]]]),
    );
    expect(output.toFlatArray()).toEqual([3, 3]);
    expect(lse.toFlatArray()).toEqual([1 + Math.log(4), 1 + Math.log(4)].map(Math.fround));
  });

  it.each([
    ['flashAttention', flashAttention],
    ['tiledAttention', tiledAttention],
  ])('works in low precision inside autocast, with gradients in float32: %s', (_, attention) => {
    scope(() => {
      const q = ones([1, 1, 3, 8]).requiresGrad_();
      const output = autocast('bfloat16', () => attention(q, q, q));
      expect(output.dtype).toBe('bfloat16');
      sum(output).backward();
      expect(q.grad!.dtype).toBe('float32');
    });
  });

  it.each([
    ['flashAttention', flashAttention],
    ['tiledAttention', tiledAttention],
  ])('takes operands of several dtypes inside autocast, which lowers them: %s', (_, attention) => {
    scope(() => {
      const [q, k, v] = (['float32', 'bfloat16', 'float16'] as const).map((dtype) =>
        cast(fromTypedArray(normals(24, 7), [1, 1, 3, 8]), dtype),
      ) as [Tensor, Tensor, Tensor];
      const lowered = attention(cast(q, 'bfloat16'), k, cast(v, 'bfloat16'));
      expect(autocast('bfloat16', () => attention(q, k, v)).toFlatArray()).toEqual(lowered.toFlatArray());
      const wide = cast(q, 'float64');
      expect(() => autocast('bfloat16', () => attention(wide, k, v))).toThrow(
        /q, k and v are float64, bfloat16 and bfloat16; cast\(\)/,
      );
    });
  });

  it('takes more scores than exist at a time, in memory linear in the sequence', () => {
    scope(() => {
      // 2^26 scores, in 16 blocks of queries.
      const length = 8192;
      const x = fromTypedArray(Float32Array.from(normals(length, 5)), [1, 1, length, 1]).requiresGrad_();
      const before = process.memoryUsage().rss;
      sum(flashAttention(x, x, x)).backward();
      // All scores take 256 MiB in each of their forms.
      expect(process.memoryUsage().rss - before).toBeLessThan(256 * 2 ** 20);
      expect(x.grad!.toFlatArray().every(Number.isFinite)).toBe(true);
    });
  });
});

describe('flashAttention refuses', () => {
  const shaped = (...shape: number[]) => empty(shape);
  const q = shaped(2, 4, 5, 16);

  it.each([
    [
      [shaped(4, 5, 16), q, q],
      /flashAttention: q \[4, 5, 16\].*must be \[batch, heads, sequence, head dimension\]/,
    ],
    [[q, q, shaped(2, 4, 6, 16)], /v \[2, 4, 6, 16\]: keys and values must be of one shape/],
    [[q, shaped(1, 4, 5, 16), shaped(1, 4, 5, 16)], /one batch size/],
    [[q, shaped(2, 4, 5, 8), shaped(2, 4, 5, 8)], /same head dimension/],
    [
      [q, shaped(2, 3, 5, 16), shaped(2, 3, 5, 16)],
      /heads of q, 4, must be a multiple of those of k and v, 3/,
    ],
    [[shaped(1, 1, 2, 257), shaped(1, 1, 2, 257), shaped(1, 1, 2, 257)], /from 1 to 256, not 257/],
    [[shaped(1, 1, 2, 0), shaped(1, 1, 2, 0), shaped(1, 1, 2, 0)], /from 1 to 256, not 0/],
  ])('operands that do not fit together %#', (operands, message) => {
    const [a, b, c] = operands as [Tensor, Tensor, Tensor];
    expect(() => flashAttention(a, b, c)).toThrow(message);
    expect(() => flashAttention(a, b, c)).toThrow(expect.objectContaining({ code: 'SHAPE' }));
  });

  it('dtypes that differ or are not floating-point, and what is not a tensor', () => {
    const ids = empty([2, 4, 5, 16], { dtype: 'int32' });
    expect(() => flashAttention(q, q, cast(q, 'float16'))).toThrow(/float32, float32 and float16; cast\(\)/);
    expect(() => flashAttention(ids, ids, ids)).toThrow(/must be floating-point, not int32/);
    expect(() => flashAttention(q, q, 3 as unknown as Tensor)).toThrow(/takes tensors q, k and v, not 3/);
    expect(() => flashAttention(q, q, Object.create(null) as Tensor)).toThrow(/q, k and v, not an object/);
  });

  it.each([
    [{ isCausal: true }, /no option "isCausal".*causal/],
    [{ causal: 1 }, /causal must be true or false, not 1/],
    [{ deterministic: 'no' }, /deterministic must be true or false/],
    [{ scale: NaN }, /scale must be a finite number, not NaN/],
    [{ scale: '1' }, /scale must be a finite number/],
    [{ scale: Object.create(null) }, /scale must be a finite number, not an object/],
    [{ causal: Object.create(null) }, /causal must be true or false, not an object/],
    [null, /options are an object/],
  ])('options %j', (options, message) => {
    const call = () => flashAttention(q, q, q, options as FlashAttentionOptions);
    expect(call).toThrow(message);
    expect(call).toThrow(expect.objectContaining({ code: 'OPTION' }));
  });

  it('tensors that were disposed', () => {
    const gone = empty([1, 1, 2, 16]);
    gone.dispose();
    expect(() => flashAttention(gone, gone, gone)).toThrow(expect.objectContaining({ code: 'DISPOSED' }));
  });
});
