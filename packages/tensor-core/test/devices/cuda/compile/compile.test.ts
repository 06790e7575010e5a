import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KernelBuilder, collectHeaders } from '../../../../src/devices/cuda/compile/compile.ts';
import { KernelCache } from '../../../../src/devices/cuda/compile/kernel-cache.ts';
import type { CompileRequest, KernelCompiler } from '../../../../src/devices/cuda/compile/nvrtc.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'roofline-compile-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

class FakeCompiler implements KernelCompiler {
  readonly version: string;
  readonly requests: CompileRequest[] = [];

  constructor(version = '1') {
    this.version = version;
  }

  compile(request: CompileRequest): Uint8Array {
    this.requests.push(request);
    return new Uint8Array([this.requests.length]);
  }
}

function file(name: string, text: string): URL {
  writeFileSync(join(folder, name), text);
  return pathToFileURL(join(folder, name));
}

describe('collectHeaders', () => {
  it('follows includes beside the source and among the kernels of this package', () => {
    file('near.cuh', '#include "prelude.cuh"\n');
    const headers = collectHeaders('#include "near.cuh"\n#include <ignored>\n', pathToFileURL(`${folder}/`));
    expect([...headers.keys()].sort()).toEqual(['float16.cuh', 'near.cuh', 'prelude.cuh']);
  });

  it('names a header that is missing', () => {
    expect(() => collectHeaders('#include "nowhere.cuh"', pathToFileURL(`${folder}/`))).toThrow(
      /nowhere\.cuh/,
    );
  });
});

describe('KernelBuilder', () => {
  const builder = (compiler: KernelCompiler, architecture = 'sm_90a') =>
    new KernelBuilder(architecture, () => compiler, new KernelCache(join(folder, 'cache')));

  it('compiles once, and takes the cached image afterwards, also in another process', () => {
    const compiler = new FakeCompiler();
    expect([...builder(compiler).buildText('k', 'source')]).toEqual([1]);
    expect([...builder(compiler).buildText('k', 'source')]).toEqual([1]);
    expect(compiler.requests).toHaveLength(1);
  });

  it('compiles anew for another source, definition, architecture or compiler', () => {
    const compiler = new FakeCompiler();
    const source = file('k.cu', '#include "h.cuh"\n');
    file('h.cuh', '// one');
    builder(compiler).buildFile(source, { N: 1 });
    builder(compiler).buildFile(source, { N: 2 });
    builder(compiler, 'sm_80').buildFile(source, { N: 1 });
    builder(compiler).buildText('k', '// another');
    const newer = new FakeCompiler('2');
    builder(newer).buildFile(source, { N: 1 });
    expect(compiler.requests).toHaveLength(4);
    expect(newer.requests).toHaveLength(1);
    expect(compiler.requests[0]).toMatchObject({
      name: 'k',
      architecture: 'sm_90a',
      options: ['--define-macro=N=1'],
    });
    expect(compiler.requests[0]!.headers.get('h.cuh')).toBe('// one');
  });
});
