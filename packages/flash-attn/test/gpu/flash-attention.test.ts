import { device } from '@roofline/tensor-core';
import { describe } from 'vitest';
import { describeFlash } from '../flash-cases.ts';
import { randomProblem } from '../problems.ts';

describe('flashAttention on the GPU', () => {
  describeFlash(() => device('cuda'), {
    problems: Array.from({ length: 200 }, (_, i) => randomProblem(i, 700, [16, 20, 64, 80, 128, 256])),
    dtypes: ['bfloat16', 'float16', 'float32'],
  });
});
