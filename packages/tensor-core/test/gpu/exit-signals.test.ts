import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const core = new URL('../../src/index.ts', import.meta.url).href;

/** Ops whose kernels are compiled one by one and, in a compiled function, by threads. */
const program = (signal: NodeJS.Signals) => `
  import * as t from '${core}';
  const x = t.randn([64, 64], { device: t.device('cuda') });
  const step = t.compile(() => t.sum(t.exp(t.mul(t.matmul(x, x), 0.5))));
  for (let i = 0; i < 3; i++) step().item();
  setTimeout(() => {}, 60_000);
  process.kill(process.pid, '${signal}');`;

it.each(['SIGINT', 'SIGTERM'] as const)('%s ends a process that has compiled kernels', (signal) => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-signals-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // NVRTC compiles nothing that one of the caches has.
  const env = { ...process.env, ROOFLINE_CACHE_DIR: folder, CUDA_CACHE_PATH: join(folder, 'nvidia') };
  const ended = spawnSync(
    process.execPath,
    [
      '--conditions=roofline-source',
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      program(signal),
    ],
    { encoding: 'utf8', env, timeout: 50_000, killSignal: 'SIGKILL' },
  );
  expect(ended).toMatchObject({ signal, stderr: '' });
});
