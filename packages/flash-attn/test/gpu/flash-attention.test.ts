import { device } from '@roofline/tensor-core';
import { afterAll, beforeAll, describe } from 'vitest';
import { flashAttentionWithLse, setFlashKernels } from '../../src/index.ts';
import { describeFlash } from '../flash-cases.ts';
import { describeMasks } from '../mask-cases.ts';
import { type AttentionProblem, randomProblem } from '../problems.ts';

const problems = (count: number, dimensions: readonly number[]) =>
  Array.from({ length: count }, (_, i) => randomProblem(i, 400, dimensions));

const longRows = (headDimension: number): AttentionProblem => ({
  ...{ batch: 1, heads: 2, keyHeads: 1, queries: 200, keys: 2500, headDimension, causal: true },
  ...{ magnitude: 4, storage: ['bnhd', 'sliced', 'bhnd'], seed: headDimension },
});

const masks = () =>
  describeMasks(
    (q, k, v, causal) => flashAttentionWithLse(q, k, v, { causal, scale: 1 }),
    () => device('cuda'),
    {
      dtypes: ['bfloat16', 'float32'],
      queries: [1, 16, 64, 70, 150],
      sizes: [
        [3, 17],
        [37, 80],
        [70, 40],
        [3, 700],
        [150, 1000],
      ],
    },
  );

// Float64 on the CPU, which they are held to, takes most of the time.
describe('flashAttention by the kernels for every GPU', () => {
  beforeAll(() => setFlashKernels('simt'));
  afterAll(() => setFlashKernels('auto'));
  describeFlash(() => device('cuda'), {
    problems: problems(70, [16, 20, 64, 80, 128, 256]),
    dtypes: ['bfloat16', 'float16', 'float32'],
  });
  masks();
});

describe('flashAttention on the tensor cores of every GPU', () => {
  beforeAll(() => setFlashKernels('mma'));
  afterAll(() => setFlashKernels('auto'));
  describeFlash(() => device('cuda'), {
    problems: problems(70, [16, 20, 64, 80, 128, 144, 256]),
    dtypes: ['bfloat16', 'float16', 'float32'],
  });
  masks();
});

// On Hopper its own kernels; on another GPU these run those above again.
describe('flashAttention by the fastest kernels', () => {
  describeFlash(() => device('cuda'), {
    problems: [
      ...problems(50, [64, 80, 128]),
      ...problems(50, [8, 16, 24, 32, 40, 72, 96, 104, 112, 120, 136, 192, 256]),
      // Few queries of many keys: several blocks share a tile.
      ...[16, 64, 80, 128, 256].map((headDimension) => longRows(headDimension)),
    ],
    dtypes: ['bfloat16', 'float16'],
  });
  masks();
});
