import type { ProfiledKernel } from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { splitPass } from '../../../src/benchmarks/ddp/overlap.ts';
import { packProfile } from '../../../src/benchmarks/profile/packed-profile.ts';
import { kernel } from '../../fixtures/ddp-records.ts';

/** What of a pass is communication, by its names; each kernel is on the stream before the colon. */
function communicationOf(...kernels: readonly (string | ProfiledKernel)[]): string[] {
  const profile = packProfile({
    ...{ ops: [], ranges: [], wallUs: 100, droppedRecords: 0 },
    kernels: kernels.map((each, i) => {
      if (typeof each !== 'string') return each;
      const [stream, name] = each.split(': ') as [string, string];
      return kernel(name, stream, i, i + 1);
    }),
  });
  const pass = { status: 'ok', communication: 'kernels', startMs: 0, profile } as const;
  const { computation, communication } = splitPass(pass);
  expect(computation.length + communication.length).toBe(kernels.length);
  return communication.map(({ name }) => name);
}

it('communication is NCCL by its names old and new, and nothing that is named like it', () => {
  const [dev, old] = ['ncclDevKernel_AllReduce_Sum_f32', 'ncclKernel_AllReduce_RING_LL_Sum_float'];
  expect(communicationOf(`1: ${dev}`, `2: ${old}`, '3: matmul', '4: my_ncclKernel_like')).toEqual([dev, old]);
  expect(communicationOf('gloo: allReduce', '1: two_shot_all_reduce', '2: two_shot_all_reduced')).toEqual([
    'allReduce',
    'two_shot_all_reduce',
  ]);
});

it('communication is all on a stream whose kernels all communicate, copies too', () => {
  const copy: ProfiledKernel = { ...kernel('[CUDA memcpy DtoD]', '1', 5, 6), kind: 'memcpy' };
  expect(communicationOf('1: ncclDevKernel_A', copy, '2: matmul')).toEqual([
    'ncclDevKernel_A',
    '[CUDA memcpy DtoD]',
  ]);
  expect(communicationOf('2: matmul', copy)).toEqual([]);
});

it('on a stream that calculates, too, as that of a graph, kernels that communicate alone are', () => {
  const copy: ProfiledKernel = { ...kernel('[CUDA memcpy DtoD]', '1', 5, 6), kind: 'memcpy' };
  expect(communicationOf('1: ncclDevKernel_A', '1: matmul', copy)).toEqual(['ncclDevKernel_A']);
});
