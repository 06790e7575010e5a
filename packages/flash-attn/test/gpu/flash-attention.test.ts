import { device } from '@roofline/tensor-core';
import { afterAll, beforeAll, describe } from 'vitest';
import { setFlashKernels } from '../../src/index.ts';
import { describeFlash } from '../flash-cases.ts';
import { randomProblem } from '../problems.ts';

const problems = (count: number, dimensions: readonly number[]) =>
  Array.from({ length: count }, (_, i) => randomProblem(i, 400, dimensions));

// Float64 on the CPU, which they are held to, takes most of the time.
describe('flashAttention on the GPU', () => {
  describeFlash(() => device('cuda'), {
    problems: problems(70, [16, 20, 64, 80, 128, 256]),
    dtypes: ['bfloat16', 'float16', 'float32'],
  });
});

// On another GPU than Hopper these run the kernels above again.
describe("flashAttention by Hopper's own kernels", () => {
  beforeAll(() => setFlashKernels('hopper'));
  afterAll(() => setFlashKernels('simt'));
  describeFlash(() => device('cuda'), {
    problems: problems(100, [64, 80, 128]),
    dtypes: ['bfloat16', 'float16'],
  });
});
