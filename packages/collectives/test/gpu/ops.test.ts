import { cudaDeviceCount } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';

const count = cudaDeviceCount();

// A group of one rank captures its collectives as well.
describe('collectives as ops, by NCCL itself', () => {
  it.for([
    ['collective-ops', 1],
    ['collective-ops', 2],
    ['collective-ops', 4],
    ['compiled-collectives', 1],
    ['compiled-collectives', 2],
    ['compiled-collectives', 4],
  ] as const)('%s, %i ranks', { timeout: 180_000 }, async ([script, size], { skip }) => {
    skip(count < size, `${count} GPUs`);
    for (const { code, stdout, stderr } of await runRanks(script, size, ['real']))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
