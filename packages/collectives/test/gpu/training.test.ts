import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cudaDeviceCount } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';

const count = cudaDeviceCount();

describe('fit on several GPUs', () => {
  it.for([1, 2, 4])(
    'makes the steps of one process, and goes on from a file: %i ranks',
    { timeout: 300_000 },
    async (size, { skip }) => {
      skip(count < size, `${count} GPUs`);
      const folder = mkdtempSync(join(tmpdir(), 'training-'));
      try {
        for (const action of ['begin', 'resume'])
          for (const { code, stdout, stderr } of await runRanks('training', size, ['real', action, folder]))
            expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
