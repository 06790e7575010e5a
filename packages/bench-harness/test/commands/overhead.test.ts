import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

it('roofline overhead times eager ops on the CPU, without ceilings and caches', async () => {
  const root = temporaryFolder();
  const out = join(root, 'out');
  const words = [
    'overhead',
    '--study',
    'ops',
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
    stdout: expect.stringContaining('An eager op costs the host from'),
  });
});

it('roofline overhead times train steps off and under each instrument', async () => {
  const root = temporaryFolder();
  const model = '--d-model 16 --d-ff 32 --layers 1 --heads 2 --vocab 50 --context 8 --batch 1'.split(' ');
  const words = '--study instruments --repeats 3 --warmup 1 --device cpu --out'.split(' ');
  const out = join(root, 'out');
  const { exitCode, stdout } = await runCli(['overhead', ...model, ...words, out, '--json']);
  expect(exitCode).toBe(0);
  const { rows } = JSON.parse(stdout);
  expect(rows.map((row: { instrument: string }) => row.instrument)).toEqual([
    'profiling',
    'a profiler at rest',
    'recording memory',
  ]);
  for (const row of rows) {
    expect(row.status).toBe('ok');
    expect(Math.min(row.offMs, row.onMs, row.readOutMs)).toBeGreaterThan(0);
    expect(row.ratio).toBeCloseTo(row.onMs / row.offMs);
    if (row.instrument !== 'a profiler at rest') expect(row.events).toBeGreaterThan(20);
    expect(row.droppedRecords).toBe(0);
  }
  const report = await runCli(['report', out]);
  expect(report.stdout).toMatch(
    /Added to the time of a train step: profiling .*; a profiler at rest .*; recording memory /,
  );
});
