import { cudaDeviceCount } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';

const count = cudaDeviceCount();

describe('all-reduces in memory that all GPUs reach', () => {
  it.for([2, 4])('%i ranks', async (size, { skip }) => {
    skip(count < size, `${count} GPUs`);
    for (const { code, stdout, stderr } of await runRanks('symmetric-memory', size, ['real']))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });

  it('end where another rank does not come', async ({ skip }) => {
    skip(count < 2, `${count} GPUs`);
    for (const { code, stdout, stderr } of await runRanks('symmetric-memory', 2, ['real', 'absent']))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
