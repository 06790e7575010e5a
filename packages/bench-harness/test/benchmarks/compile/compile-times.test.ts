import { existsSync } from 'node:fs';
import { beforeEach, expect, it, vi } from 'vitest';
import { measureCompileTimes } from '../../../src/benchmarks/compile/compile-times.ts';
import { measureCompile } from '../../../src/benchmarks/compile/measure.ts';
import type { CompileCell } from '../../../src/benchmarks/compile/parameters.ts';
import { runCellProcess } from '../../../src/runner/cell-process.ts';
import { toyCell } from '../../fixtures/records.ts';

vi.mock(import('../../../src/runner/cell-process.ts'), async (original) => {
  const { runCellProcess } = await original();
  return { runCellProcess: vi.fn(runCellProcess) };
});

// What is measured on a GPU alone is, on the CPU.
vi.mock(import('@roofline/tensor-core'), async (original) => {
  const core = await original();
  return { ...core, device: (label) => core.device(label === 'cuda:1' ? 'cpu' : label) };
});

const cell: CompileCell = { ...toyCell, execution: 'compiled' };
const calls = () => vi.mocked(runCellProcess).mock.calls;
const caches = () => calls().map(([, options]) => options?.environment?.['ROOFLINE_CACHE_DIR']);

beforeEach(() => {
  vi.mocked(runCellProcess).mockReset();
});

it('compiles the step in two fresh processes that share a cache of their own, which is gone after them', async () => {
  vi.stubEnv('ROOFLINE_CACHE_DIR', '/of-the-user');
  const { coldMs, warmMs } = await measureCompileTimes(cell, 0, 'cpu');
  expect(Math.min(coldMs, warmMs)).toBeGreaterThan(0);
  const [first, second] = caches();
  expect(first).toMatch(/roofline-cold-/);
  expect(second).toBe(first);
  expect(existsSync(first!)).toBe(false);
  vi.unstubAllEnvs();
});

it('says why a step could not be compiled, and leaves no cache behind', async () => {
  await expect(measureCompileTimes(cell, 0, 'no-such-device')).rejects.toThrow(
    /^Compiling the step in a process of its own failed: /,
  );
  expect(existsSync(caches()[0]!)).toBe(false);
});

it.each([
  ['cuda:1', true, { coldMs: 900, warmMs: 200 }],
  ['cuda:1', false, null],
  ['cpu', true, null],
] as const)('times compiling on %s, asked for %s: %o', async (deviceLabel, coldAndWarm, expected) => {
  for (const durationMs of [900, 200])
    vi.mocked(runCellProcess).mockResolvedValueOnce({ status: 'ok', result: { calls: 2, durationMs } });
  const settings = { steps: 1, seed: 3, coldAndWarm };
  const { compileTimes } = await measureCompile(cell, { settings, deviceLabel, progress: () => {} });
  expect(compileTimes).toEqual(expected);
  const job = { task: 'compile-time', parameters: cell, settings: { seed: 3 }, deviceLabel };
  expect(calls().map(([each]) => each)).toEqual(expected ? [job, job] : []);
});
