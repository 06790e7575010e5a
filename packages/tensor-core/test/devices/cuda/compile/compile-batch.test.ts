// Is alone in a process: a stand-in for NVRTC's library stays loaded.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { CompileBatch } from '../../../../src/devices/cuda/compile/compile-batch.ts';
import { KernelBuilder } from '../../../../src/devices/cuda/compile/compile.ts';
import { type CompileRequest, loadNvrtc } from '../../../../src/devices/cuda/compile/nvrtc.ts';
import { KernelCompileError } from '../../../../src/errors.ts';
import { hostCompilerVersion } from '../../../../src/testing/emulated-device.ts';
import { standInForNvrtc } from './stand-in-for-nvrtc.ts';

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
      write: (key: string, image: Uint8Array) => void kept.set(key, image),
    };
    const begun = vi.fn((all: readonly CompileRequest[]) => new CompileBatch(all, 2));
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
});
