import { cudaDeviceCount } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';

const count = cudaDeviceCount();

describe('several GPUs give the results of one', () => {
  it.for([
    ['data-parallel', 1],
    ['data-parallel', 2],
    ['data-parallel', 4],
    ['sharded-optimizer', 2],
    ['sharded-optimizer', 4],
    ['compiled-sharded', 1],
    ['compiled-sharded', 2],
    ['compiled-sharded', 4],
    ['tensor-parallel', 1],
    ['tensor-parallel', 2],
    ['tensor-parallel', 4],
    ['context-parallel', 2],
    ['context-parallel', 4],
  ] as const)('%s, %i ranks', { timeout: 300_000, concurrent: true }, async ([script, size], { skip }) => {
    skip(count < size, `${count} GPUs`);
    const isOf = (...scripts: string[]) => scripts.includes(script);
    const place = isOf('compiled-sharded', 'tensor-parallel', 'context-parallel') ? 'real' : 'nccl';
    for (const { code, stdout, stderr } of await runRanks(script, size, [place]))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
