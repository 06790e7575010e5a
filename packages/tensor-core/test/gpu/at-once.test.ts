import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { compileAtOnce } from '../compile/at-once/processes.ts';

it('two processes compile the same function at once, into one kernel cache that is empty before', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-at-once-'));
  try {
    const environment = { ROOFLINE_CACHE_DIR: folder };
    const [first, second] = await compileAtOnce(2, 'cuda:0', environment);
    expect(second).toEqual(first);
    const kernels = readdirSync(join(folder, 'kernels'));
    expect(kernels.length).toBeGreaterThan(3);
    expect(kernels.filter((name) => !/^[0-9a-f]{64}\.cubin$/.test(name))).toEqual([]);
    // The same again from the cache alone.
    expect(await compileAtOnce(1, 'cuda:0', environment)).toEqual([first]);
    expect(readdirSync(join(folder, 'kernels'))).toEqual(kernels);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
