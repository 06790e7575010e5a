import { readdirSync } from 'node:fs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { measureFirstOp } from '../../../src/benchmarks/overhead/first-op.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

it('times the first op in two fresh processes, and leaves no cache behind', async () => {
  // Others have theirs in the machine's.
  const folder = temporaryFolder();
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const { coldMs, warmMs } = (await measureFirstOp('add', 'cpu'))!;
  expect(Math.min(coldMs, warmMs)).toBeGreaterThan(10);
  expect(readdirSync(folder)).toEqual([]);
});

it('says why a first op failed', async () => {
  await expect(measureFirstOp('add', 'no-such-device')).rejects.toThrow(
    /The first add in a process of its own failed/,
  );
});
