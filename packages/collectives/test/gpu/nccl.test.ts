import { cudaDeviceCount } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';

const count = cudaDeviceCount();

describe('NCCL itself', () => {
  it.for([1, 2, 4])('every collective in every dtype, %i ranks', async (size, { skip }) => {
    skip(count < size, `${count} GPUs`);
    for (const { code, stdout, stderr } of await runRanks('nccl-collectives', size, ['real']))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
