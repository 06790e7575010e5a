import { existsSync, readdirSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { runCellProcess } from '../../src/runner/cell-process.ts';
import { timeColdAndWarm } from '../../src/runner/cold-and-warm.ts';

vi.mock(import('../../src/runner/cell-process.ts'));

const job = { task: 'first-op', parameters: {}, settings: {}, deviceLabel: 'cuda:0' };

it('a cold start finds neither our cache of kernels nor that of NVRTC, and a warm one those of the cold one', async () => {
  const folders: string[] = [];
  vi.mocked(runCellProcess).mockImplementation((_, { environment } = {}) => {
    const { ROOFLINE_CACHE_DIR: own = '', CUDA_CACHE_PATH: nvrtc = '' } = environment!;
    if (folders.length === 0) expect(readdirSync(own)).toEqual([]);
    expect(nvrtc.startsWith(own)).toBe(true);
    folders.push(own);
    return Promise.resolve({ status: 'ok', result: { durationMs: folders.length } } as never);
  });
  expect(await timeColdAndWarm(job, 'It')).toEqual({ coldMs: 1, warmMs: 2 });
  expect(folders[1]).toBe(folders[0]);
  expect(existsSync(folders[0]!)).toBe(false);
});
