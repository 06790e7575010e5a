// Is alone in a process: a stand-in for NVRTC's library stays loaded.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { CompileBatch } from '../../src/nvrtc/compile-batch.ts';
import { KernelBuilder } from '../../src/nvrtc/compile.ts';
import type { BeginBatch } from '../../src/nvrtc/kernel-batch.ts';
import { type CompileRequest, loadNvrtc } from '../../src/nvrtc/nvrtc.ts';
import { commonBuilder } from '../../src/nvrtc/common-builder.ts';
import { KernelCompileError } from '../../src/base/errors.ts';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { standInForNvrtc } from './stand-in-for-nvrtc.ts';

const batchModule = new URL('../../src/nvrtc/compile-batch.ts', import.meta.url).href;

describe.skipIf(!hostCompilerVersion())('kernels compiled aside (need gcc)', () => {
  beforeAll(standInForNvrtc);

  let folder: string;
  let requests: CompileRequest[];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'roofline-batch-'));
    requests = Array.from({ length: 7 }, (_, i) => request(`whole${i}`));
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  /** One that makes a file of that name when it is compiled. */
  const request = (name: string): CompileRequest => ({
    ...{ name, source: `// touches ${join(folder, name)}\n`, headers: new Map([['h.cuh', '// header']]) },
    ...{ architecture: 'sm_90a', options: ['--define-macro=N=1'] },
  });
  const isCompiled = ({ name }: CompileRequest) => existsSync(join(folder, name));
  const waitForAll = (all: readonly CompileRequest[]) =>
    vi.waitFor(() => expect(all.every(isCompiled)).toBe(true), { timeout: 30_000, interval: 20 });
  const textOf = (image: Uint8Array | null) => image && Buffer.from(image).toString();
  /** Null for what is left to who takes it. */
  const takeAll = (batch: CompileBatch) => requests.map((_, i) => textOf(batch.take(i)));
  const made = () => requests.map((each) => textOf(loadNvrtc().compile(each)));

  it('are what this thread would have compiled', async () => {
    const batch = new CompileBatch(requests, 3);
    await waitForAll(requests);
    expect(takeAll(batch)).toEqual(made());
  });

  it('come without a turn of the event loop', () => {
    const batch = new CompileBatch(requests, 2);
    const asleep = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < 1500 && !requests.every(isCompiled); i++) Atomics.wait(asleep, 0, 0, 20);
    expect(takeAll(batch)).toEqual(made());
  });

  it('are each compiled by a thread or left to who takes them', () => {
    const images = takeAll(new CompileBatch(requests, 2));
    const expected = made();
    for (const [i, image] of images.entries()) if (image !== null) expect(image).toBe(expected[i]);
    expect(takeAll(new CompileBatch(requests, 0))).toEqual(requests.map(() => null));
  });

  it('are left to who takes them where they do not compile, the others not', async () => {
    requests = [request('broken'), request('whole')];
    const batch = new CompileBatch(requests, 1);
    await waitForAll(requests);
    const [broken, whole] = takeAll(batch);
    expect(broken).toBe(null);
    expect(whole).toContain('name whole.cu');
  });

  it('reach a builder, which keeps them, and throws for what does not compile', async () => {
    const kept = new Map<string, Uint8Array>();
    const cache = {
      read: (key: string) => kept.get(key),
      write: (key: string, image: Uint8Array) => kept.set(key, image).has(key),
    };
    const begun = vi.fn<BeginBatch>((all, keep) => new CompileBatch(all, 2, keep));
    const builder = new KernelBuilder('sm_90a', { cache, beginBatch: begun });
    const [whole, broken] = [request('whole'), request('broken')];
    builder.begin([whole, broken, whole]);
    builder.begin([broken]);
    await waitForAll([whole, broken]);
    expect(textOf(builder.build(whole))).toContain('name whole.cu');
    expect(() => builder.build(broken)).toThrow(KernelCompileError);
    builder.begin([whole]);
    expect(builder.build(whole)).toBe(kept.get(builder.keyOf(whole)));
    expect(begun.mock.calls.map(([all]) => all)).toEqual([[whole, broken]]);
  });

  it('are kept where nobody takes them, and nothing is left of the batch', async () => {
    const before = asyncHandles();
    const kept = new Map<number, string>();
    const batch = new CompileBatch(requests, 2, (index, image) => kept.set(index, textOf(image)!).has(index));
    await vi.waitFor(() => expect(kept.size).toBe(requests.length), { timeout: 30_000, interval: 20 });
    expect(requests.map((_, i) => kept.get(i))).toEqual(made());
    expect(takeAll(batch)).toEqual(requests.map(() => null));
    await vi.waitFor(() => expect(asyncHandles()).toBeLessThanOrEqual(before), {
      timeout: 30_000,
      interval: 20,
    });
  });

  it.each([0, 1])(
    'that do not compile are refused as often as they are asked for, of %i threads',
    (threads) => {
      const cache = { read: () => undefined, write: () => false };
      const beginBatch: BeginBatch = (all, keep) => new CompileBatch(all, threads, keep);
      const builder = new KernelBuilder('sm_90a', { cache, beginBatch });
      const broken = request('broken');
      builder.begin([broken]);
      for (let i = 0; i < 3; i++) expect(() => builder.build(broken)).toThrow(KernelCompileError);
    },
  );

  it('are begun once for all GPUs of an architecture and a cache', () => {
    expect(commonBuilder('sm_90a')).toBe(commonBuilder('sm_90a'));
    expect(commonBuilder('sm_80')).not.toBe(commonBuilder('sm_90a'));
    const before = commonBuilder('sm_90a');
    vi.stubEnv('ROOFLINE_CACHE_DIR', folder);
    expect(commonBuilder('sm_90a')).not.toBe(before);
    vi.stubEnv('ROOFLINE_CACHE_DIR', undefined);
  });

  it('a batch that has ended is no one to wait for', async () => {
    const sleepy = { ...request('sleepy'), source: '// sleeps 300' };
    const batch = new CompileBatch([request('broken'), sleepy, ...requests], 1);
    await batch.ended();
    expect(requests.map((_, i) => batch.take(2 + i))).toEqual(requests.map(() => null));
    expect(readdirSync(folder)).toEqual(['broken']);
  });

  it.each([
    ['is over', '', 0],
    ['is over with an exit code', 'process.exitCode = 5;', 5],
    ['exits', 'process.exit(7);', 7],
  ])('a process that %s meanwhile ends with those that are under way', (_, then, code) => {
    const sources = Array.from({ length: 6 }, (_, i) => `${request(`sleepy${i}`).source}// sleeps 400\n`);
    const program = `
      import { readdirSync } from 'node:fs';
      import { CompileBatch } from '${batchModule}';
      const begun = () => readdirSync('${folder}').sort();
      process.on('exit', () => {
        // One may be begun that has not come as far as its file.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
        console.log(begun().join());
      });
      const request = (source) => ({ name: 'k', source, headers: new Map(), architecture: 'sm_90a', options: [] });
      new CompileBatch(${JSON.stringify(sources)}.map(request), 2);
      const timer = setInterval(() => {
        if (begun().length < 2) return;
        clearInterval(timer);
        ${then}
      }, 5);`;
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
      { encoding: 'utf8' },
    );
    expect({ status, stderr }).toEqual({ status: code, stderr: '' });
    expect(stdout).toBe(`${readdirSync(folder).sort().join()}\n`);
    expect(readdirSync(folder).length).toBeLessThan(sources.length);
  });

  it('are compiled without what a process loads first, which may never end', () => {
    const first = join(folder, 'first.mjs');
    writeFileSync(first, "console.log('loaded'); setInterval(() => {}, 1000);");
    const program = `
      import { CompileBatch } from '${batchModule}';
      await new CompileBatch([{ name: 'k', source: '', headers: new Map(), architecture: 'sm_90a', options: [] }], 1).ended();
      console.log('ended');
      process.exit();`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: `--import=${pathToFileURL(first).href}` },
      timeout: 20_000,
    });
    expect(stdout).toBe('loaded\nended\n');
  });

  it('are left to who takes them where no thread may be started', () => {
    const permissions = ['--permission', '--allow-fs-read=*', '--disable-warning=PERM0001'];
    const program = `
      import { CompileBatch } from '${batchModule}';
      const batch = new CompileBatch([{ name: 'k' }], 2);
      console.log(batch.take(0));
      await batch.ended().catch((error) => console.log(error.message));`;
    const output = execFileSync(
      process.execPath,
      [...permissions, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
      { encoding: 'utf8' },
    );
    expect(output).toMatch(
      /^null\ncompileKernels: a thread that compiles could not be started: .*--allow-worker/,
    );
  });
});

/** Ports and threads have some each until they are closed. */
function asyncHandles(): number {
  const { libuv } = process.report.getReport() as { libuv: { type: string }[] };
  return libuv.filter(({ type }) => type === 'async').length;
}
