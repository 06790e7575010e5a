import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const index = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href);
const op = `const { add, ones } = await import(${index}); console.log(add(ones([2]), 1).toFlatArray().join());`;

const programs = {
  'the main thread': op,
  'a worker, whose environment is a copy': `
    const { Worker } = await import('node:worker_threads');
    new Worker(${JSON.stringify(`(async () => { ${op} })()`)}, { eval: true });`,
} as const;

const hasStrace = spawnSync('strace', ['-V']).status === 0;

/** An empty home and an empty folder for temporary files, and the environment of a process that uses them. */
function emptyHome() {
  const root = mkdtempSync(join(tmpdir(), 'roofline-telemetry-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [home, temporary] = [join(root, 'home'), join(root, 'tmp')];
  for (const path of [home, temporary]) mkdirSync(path);
  const { XDG_CACHE_HOME: _, ORT_DISABLE_TELEMETRY: __, NODE_COMPILE_CACHE: ___, ...inherited } = process.env;
  // A variable that asks for telemetry is ignored: nothing is sent.
  const env = { ...inherited, HOME: home, TMPDIR: temporary, ORT_DISABLE_TELEMETRY: '0' };
  return { root, env, files: () => [home, temporary].flatMap((path) => readdirSync(path)) };
}

const node = [
  process.execPath,
  '--conditions=roofline-source',
  '--disable-warning=ExperimentalWarning',
  '--input-type=module',
  '--eval',
];

describe.each(Object.entries(programs))('an op on the CPU in %s', (_where, program) => {
  it('writes no file of its own, neither at home nor among temporary files', () => {
    const { env, files } = emptyHome();
    const [command, ...words] = [...node, program];
    expect(execFileSync(command!, words, { env, encoding: 'utf8' }).trim()).toBe('2,2');
    expect(files()).toEqual([]);
  });

  it.skipIf(!hasStrace)('connects to nothing (needs strace)', () => {
    const { root, env } = emptyHome();
    const trace = join(root, 'trace');
    // An uploader would look up its host's name soon after the start.
    const lingering = `${program}; setTimeout(() => {}, 2000)`;
    execFileSync('strace', ['-f', '-e', 'trace=network,openat', '-o', trace, ...node, lingering], { env });
    const calls = readFileSync(trace, 'utf8').split('\n');
    expect(calls.filter((call) => /libonnxruntime.*= \d+$/.test(call))).not.toEqual([]);
    expect(calls.filter((call) => /AF_INET|resolv\.conf/.test(call))).toEqual([]);
    const written = calls.filter((call) => /O_WRONLY|O_RDWR|O_CREAT/.test(call));
    expect(written.filter((call) => !/"\/(dev|proc)\//.test(call))).toEqual([]);
  });
});
