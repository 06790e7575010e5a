// Is alone in a process: a stand-in for NVRTC's library stays loaded.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CompileRequest, loadNvrtc } from '../../src/nvrtc/nvrtc.ts';
import { DeviceError, KernelCompileError } from '../../src/base/errors.ts';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';

// What NVRTC is asked for, held on a stand-in whose images tell it.
describe.skipIf(!hostCompilerVersion())('NVRTC, played', () => {
  let folder: string;
  const before = process.env.ROOFLINE_CUDA_LIBRARIES;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'roofline-nvrtc-'));
    const source = fileURLToPath(new URL('fake-nvrtc.c', import.meta.url));
    execFileSync('gcc', ['-shared', '-fPIC', '-w', source, '-o', join(folder, 'libnvrtc.so.13')]);
    process.env.ROOFLINE_CUDA_LIBRARIES = folder;
  });

  afterAll(() => {
    if (before === undefined) delete process.env.ROOFLINE_CUDA_LIBRARIES;
    else process.env.ROOFLINE_CUDA_LIBRARIES = before;
    rmSync(folder, { recursive: true });
  });

  const request: CompileRequest = {
    ...{
      name: 'k',
      source: 'the source',
      architecture: 'sm_90a',
      options: ['--define-macro=N=1', '-lineinfo'],
    },
    headers: new Map([
      ['a.cuh', 'text of a'],
      ['b.cuh', 'text of b'],
    ]),
  };
  const linesOf = (changes: Partial<CompileRequest> = {}) =>
    Buffer.from(loadNvrtc().compile({ ...request, ...changes }))
      .toString()
      .trim()
      .split('\n');

  it('gets the source, the headers beside their names, the architecture, the language and every option', () => {
    expect(loadNvrtc().version).toBe('13.7');
    expect(linesOf()).toEqual([
      'name k.cu',
      'source the source',
      'header a.cuh',
      'text text of a',
      'header b.cuh',
      'text text of b',
      'option --gpu-architecture=sm_90a',
      'option --std=c++17',
      'option --define-macro=N=1',
      'option -lineinfo',
      'live 1',
    ]);
    expect(linesOf({ architecture: 'sm_80', options: [], headers: new Map() })).toEqual([
      'name k.cu',
      'source the source',
      'option --gpu-architecture=sm_80',
      'option --std=c++17',
      'live 1',
    ]);
  });

  it('gives the options, the log and the source of what does not compile, and ends the program', () => {
    const broken = () => linesOf({ source: 'broken source' });
    expect(broken).toThrow(KernelCompileError);
    expect(broken).toThrow(
      /--gpu-architecture=sm_90a --std=c\+\+17 --define-macro=N=1 -lineinfo\nwhy\?[^]*broken source/,
    );
    expect(linesOf().at(-1)).toBe('live 1');
  });

  it('says of an architecture that it does not know which it does, and where it lies', () => {
    const unknown = () => linesOf({ architecture: 'sm_150' });
    expect(unknown).toThrow(DeviceError);
    expect(unknown).toThrow(
      /^NVRTC 13\.7 \(\/.*libnvrtc\.so\.13\) does not compile for sm_150, only up to sm_90\. .*ROOFLINE_CUDA_LIBRARIES/,
    );
    expect(linesOf().at(-1)).toBe('live 1');
  });
});
