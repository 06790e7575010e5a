import { describe, expect, it } from 'vitest';
import { collectHeaders } from '../../src/nvrtc/compile.ts';
import { type KernelCompiler, loadNvrtc } from '../../src/nvrtc/nvrtc.ts';
import { DeviceError, KernelCompileError, LibraryNotFoundError } from '../../src/base/errors.ts';
import { kernelSource } from '../../src/base/host/package-root.ts';

function find(): KernelCompiler | null {
  try {
    return loadNvrtc();
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return null;
    throw error;
  }
}

const nvrtc = find();

// It needs its library, but no GPU.
describe.skipIf(!nvrtc)('NVRTC', () => {
  const compile = (source: string, options: string[] = []) =>
    nvrtc!.compile({
      ...{ name: 'k', source, options, architecture: 'sm_90a' },
      headers: collectHeaders(source, kernelSource('')),
    });

  it('compiles with headers from memory and definitions', () => {
    const source = `#include "prelude.cuh"
      extern "C" __global__ void k(TYPE* x) { x[0] = convert<TYPE>(exp(convert<float>(x[1]))); }`;
    const image = compile(source, ['--define-macro=TYPE=bfloat16']);
    expect([...image.subarray(1, 4)]).toEqual([...Buffer.from('ELF')]);
  });

  it('gives the log and the numbered source of what does not compile', () => {
    const broken = () => compile('extern "C" __global__ void k() {\n  absent();\n}');
    expect(broken).toThrow(KernelCompileError);
    expect(broken).toThrow(/k\.cu\(2\): error: identifier "absent" is undefined[^]* 2 \| {3}absent\(\);/);
  });

  it('says which architectures it knows where it is asked for another', () => {
    const source = '__global__ void k() {}';
    const unknown = () =>
      nvrtc!.compile({ name: 'k', source, options: [], architecture: 'sm_9990', headers: new Map() });
    expect(unknown).toThrow(DeviceError);
    expect(unknown).toThrow(/does not compile for sm_9990, only up to sm_(9\d|1\d\d)\. /);
  });

  it('has a version', () => {
    expect(nvrtc!.version).toMatch(/^\d+\.\d+$/);
  });
});
