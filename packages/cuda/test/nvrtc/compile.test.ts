import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KernelBuilder, KernelPostponed, collectHeaders } from '../../src/nvrtc/compile.ts';
import { KernelCache } from '../../src/nvrtc/kernel-cache.ts';
import type { CompileRequest, KernelCompiler } from '../../src/nvrtc/nvrtc.ts';

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
  const builderOf = (compiler: KernelCompiler, architecture = 'sm_90a') =>
    new KernelBuilder(architecture, {
      loadCompiler: () => compiler,
      cache: new KernelCache(join(folder, 'cache')),
    });

  it('compiles once, and takes the cached image afterwards, also in another process', () => {
    const compiler = new FakeCompiler();
    expect([...builderOf(compiler).buildText('k', 'source')]).toEqual([1]);
    expect([...builderOf(compiler).buildText('k', 'source')]).toEqual([1]);
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
      builderOf(compiler, build.architecture).buildFile(pathToFileURL(join(inside, 'k.cu')), build.defines);
      return compiler.requests;
    };
    const [first] = run(() => undefined, 'first');
    expect(first).toMatchObject({ name: 'k', architecture: 'sm_90a', options: ['--define-macro=N=1'] });
    expect([...first!.headers]).toEqual([['h.cuh', '// one']]);
    expect(run(() => undefined, 'same')).toHaveLength(0);
    expect(run(change, 'changed')).toHaveLength(1);
    expect(run(change, 'changed again')).toHaveLength(0);
  });

  describe('that has kernels compiled aside', () => {
    const aside = (take: (request: CompileRequest) => Uint8Array | null) => {
      const compiler = new FakeCompiler();
      const begun: string[][] = [];
      const builder = new KernelBuilder('sm_90a', {
        loadCompiler: () => compiler,
        cache: new KernelCache(join(folder, 'cache')),
        beginBatch: (requests, keep) => {
          begun.push(requests.map(({ name }) => name));
          return {
            take: (index) => {
              const image = take(requests[index]!);
              return image && keep(index, image) ? null : image;
            },
          };
        },
      });
      return { builder, compiler, begun };
    };

    it('postpones what is still to be compiled, and begins it all at once', () => {
      const { builder, compiler, begun } = aside(({ name }) => Buffer.from(name));
      builder.buildText('cached', 'cached');
      const found: (string | number)[] = [];
      const look = () => {
        for (const name of ['a', 'cached', 'b', 'a']) {
          try {
            found.push(Buffer.from(builder.buildText(name, name)).toString());
          } catch (error) {
            expect(error).toBeInstanceOf(KernelPostponed);
          }
        }
      };
      builder.postpone(look);
      expect(found.splice(0)).toEqual(['\u0001']);
      builder.postpone(look);
      expect(found).toEqual(['a', '\u0001', 'b', 'a']);
      expect(begun).toEqual([['a', 'b']]);
      expect(compiler.requests).toHaveLength(1);
    });

    it('compiles itself what is left to it', () => {
      const { builder, compiler } = aside(() => null);
      builder.begin([builder.fileRequest(file('k.cu', '// k'))]);
      builder.buildFile(file('k.cu', '// k'));
      builder.buildFile(file('k.cu', '// k'));
      expect(compiler.requests).toHaveLength(1);
    });

    it('gives what was compiled aside once more where it cannot be kept', () => {
      const { builder, compiler, begun } = aside(({ name }) => Buffer.from(name));
      writeFileSync(join(folder, 'cache'), 'in the way');
      builder.begin([builder.fileRequest(file('k.cu', '// k'))]);
      expect(Buffer.from(builder.buildFile(file('k.cu', '// k'))).toString()).toBe('k');
      expect([...builder.buildFile(file('k.cu', '// k'))]).toEqual([1]);
      expect([begun, compiler.requests.length]).toEqual([[['k']], 1]);
    });

    it('takes from the cache what another process has put there meanwhile', () => {
      const { builder, compiler } = aside(() => expect.fail('it waits'));
      builder.begin([builder.fileRequest(file('k.cu', '// k'))]);
      builderOf(compiler).buildFile(file('k.cu', '// k'));
      expect([...builder.buildFile(file('k.cu', '// k'))]).toEqual([1]);
    });

    it('reads the files that it begins once', () => {
      const { builder, begun } = aside(() => null);
      const source = file('k.cu', '// k');
      const read = vi.spyOn(builder, 'fileRequest');
      for (let i = 0; i < 3; i++) builder.beginFiles([{ source }, { source, defines: { N: 1 } }]);
      builder.beginFiles([{ source, defines: { N: 2 } }]);
      expect(begun).toEqual([['k', 'k'], ['k']]);
      expect(read).toHaveBeenCalledTimes(3);
    });

    it('postpones no more where what ran threw, and nothing without threads', () => {
      const { builder, begun } = aside(() => null);
      const fail = () => {
        throw new Error('stop');
      };
      expect(() => builder.postpone(fail)).toThrow('stop');
      builder.buildText('k', 'k');
      expect(begun).toEqual([]);
      builderOf(new FakeCompiler()).postpone(() => builderOf(new FakeCompiler()).buildText('l', 'l'));
    });
  });
});

interface Build {
  defines: Record<string, number>;
  architecture: string;
  version: string;
  readonly write: (path: string, text: string) => void;
}
