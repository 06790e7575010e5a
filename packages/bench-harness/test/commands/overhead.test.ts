import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

it('roofline overhead times eager ops on the CPU, without ceilings and caches', async () => {
  const root = temporaryFolder();
  const out = join(root, 'out');
  const words = [
    'overhead',
    '--op',
    'add,matmul',
    '--calls',
    '20',
    '--repeats',
    '3',
    '--device',
    'cpu',
    '--out',
    out,
  ];
  const { exitCode, stdout } = await runCli([...words, '--json'], { XDG_CACHE_HOME: join(root, 'cache') });
  expect(exitCode).toBe(0);
  const { rows, ceilings } = JSON.parse(stdout);
  expect(ceilings).toBeNull();
  expect(rows.map((row: { op: string }) => row.op)).toEqual(['add', 'matmul']);
  for (const row of rows) {
    expect(row.hostUs).toBeGreaterThan(0);
    expect(row).not.toHaveProperty('coldMs');
  }
  const report = await runCli(['report', out]);
  expect(report).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('An eager add costs the host'),
  });
});
