import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const script = fileURLToPath(new URL('first-calls.ts', import.meta.url));

interface FirstCalls {
  /** Compiled before the first call. */
  readonly kernels: number;
  readonly compileMs: number;
  /** Of the first calls beyond the second ones. */
  readonly extraMs: number;
}

function firstCalls(folder: string): FirstCalls {
  const environment = { ...process.env, ROOFLINE_CACHE_DIR: folder };
  const options = { env: environment, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--conditions=roofline-source', script],
    options,
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as FirstCalls;
}

it('compiles all kernels of a default sweep in 20 s, and loads them from the cache in 100 ms', () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-kernels-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [cold, warm] = [firstCalls(folder), firstCalls(folder)];
  for (const [name, { kernels, compileMs, extraMs }] of Object.entries({ cold, warm })) {
    const times = `${compileMs.toFixed(0)} ms, first calls ${extraMs.toFixed(0)} ms`;
    console.log(`${name}: ${kernels} kernels compiled in ${times}`);
  }
  expect(cold.kernels).toBeGreaterThan(0);
  expect(cold.compileMs + cold.extraMs).toBeLessThan(20_000);
  expect(warm.kernels).toBe(0);
  expect(warm.compileMs + warm.extraMs).toBeLessThan(100);
  // All that calls launch was compiled before them: from the cache they are as fast cold as warm.
  expect(cold.extraMs).toBeLessThan(100);
});
