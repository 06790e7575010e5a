import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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

  it('follows includes from a room to the top of its package', () => {
    mkdirSync(join(folder, 'kernels/room'), { recursive: true });
    file('kernels/shared.cuh', '#include "own.cuh"\n');
    file('kernels/room/own.cuh', '// beside the source\n');
    const room = pathToFileURL(`${join(folder, 'kernels/room')}/`);
    const headers = collectHeaders('#include "shared.cuh"\n', room);
    expect([...headers]).toEqual([
      ['shared.cuh', '#include "own.cuh"\n'],
      ['own.cuh', '// beside the source\n'],
    ]);
    const elsewhere = pathToFileURL(`${folder}/`);
    expect(() => collectHeaders('#include "shared.cuh"', elsewhere)).toThrow(/shared\.cuh/);
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

  // One part at a time: a key without it would find the first image.
  it.each<[string, (build: Build) => void]>([
    ['source', ({ write }) => write('k.cu', '#include "h.cuh"\n// more')],
    ['header', ({ write }) => write('h.cuh', '// another')],
    ["definition's value", (build) => (build.defines = { N: 2 })],
    ["definition's name", (build) => (build.defines = { M: 1 })],
    ['definition more', (build) => (build.defines = { N: 1, M: 1 })],
    ['architecture', (build) => (build.architecture = 'sm_80')],
    ['compiler', (build) => (build.version = '2')],
  ])('compiles anew for another %s', (_, change) => {
    // Texts are read once in a process, so each build has a folder of its own.
    const run = (apply: (build: Build) => void, name: string) => {
      const texts: Record<string, string> = { 'k.cu': '#include "h.cuh"\n', 'h.cuh': '// one' };
      const build: Build = {
        ...{ defines: { N: 1 }, architecture: 'sm_90a', version: '1' },
        write: (path, text) => (texts[path] = text),
      };
      apply(build);
      const inside = join(folder, name);
      mkdirSync(inside);
      for (const [path, text] of Object.entries(texts)) writeFileSync(join(inside, path), text);
      const compiler = new FakeCompiler(build.version);
      builder(compiler, build.architecture).buildFile(pathToFileURL(join(inside, 'k.cu')), build.defines);
      return compiler.requests;
    };
    const [first] = run(() => undefined, 'first');
    expect(first).toMatchObject({ name: 'k', architecture: 'sm_90a', options: ['--define-macro=N=1'] });
    expect([...first!.headers]).toEqual([['h.cuh', '// one']]);
    expect(run(() => undefined, 'same')).toHaveLength(0);
    expect(run(change, 'changed')).toHaveLength(1);
    expect(run(change, 'changed again')).toHaveLength(0);
  });
});

interface Build {
  defines: Record<string, number>;
  architecture: string;
  version: string;
  readonly write: (path: string, text: string) => void;
}
