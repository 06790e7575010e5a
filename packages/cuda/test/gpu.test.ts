import { describe, expect, it } from 'vitest';
import { DeviceError, DisposedError, KernelCompileError, OutOfMemoryError } from '../src/base/errors.ts';
import { Gpu } from '../src/gpu.ts';
import { hostCompilerVersion } from '../src/testing/emulated-compiler.ts';
import { openEmulatedGpu } from '../src/testing/emulated-gpu.ts';

const mebibyte = 2 ** 20;
const source = new URL('../examples/add.cu', import.meta.url);
const spec = { source, name: 'add', parameters: 'pppi' };

describe.skipIf(!hostCompilerVersion())('a kernel of a .cu file', () => {
  it('adds vectors of lengths that fill no block', () => {
    const gpu = openEmulatedGpu();
    const add = gpu.kernel(spec);
    for (const n of [1, 255, 256, 1000]) {
      using a = gpu.upload(Float32Array.from({ length: n }, (_, i) => i));
      using b = gpu.upload(new Float32Array(n).fill(0.5));
      using sum = gpu.allocateMemory(4 * n);
      add.launch([Math.ceil(n / 256), 1, 1], 256, 0, [a.address, b.address, sum.address, n]);
      expect([...sum.read(new Float32Array(n))]).toEqual(Array.from({ length: n }, (_, i) => i + 0.5));
    }
    expect(gpu.allocatedBytes).toBe(0);
  });

  it('is the same for specs that say the same', () => {
    const gpu = openEmulatedGpu();
    expect(gpu.kernel({ ...spec })).toBe(gpu.kernel(spec));
    expect(gpu.kernel({ ...spec, defines: { N: 1 } })).not.toBe(gpu.kernel(spec));
  });

  it('refuses wrong numbers of arguments, and arguments that a parameter cannot hold', () => {
    const gpu = openEmulatedGpu();
    const add = gpu.kernel(spec);
    using x = gpu.allocateMemory(4);
    const { address } = x;
    const launch = (...given: readonly (number | Uint8Array)[]) => add.launch([1, 1, 1], 32, 0, given);
    for (const given of [[], [address], [address, address, address, 1, 1]])
      expect(() => launch(...given)).toThrow(`Kernel add takes 4 arguments (pppi), got ${given.length}.`);
    expect(() => launch(address, address, address, 0.5)).toThrow(/parameter 3 of "pppi" is an int32.*0\.5/);
    expect(() => launch(address, -1, address, 1)).toThrow(/parameter 1 of "pppi" is an address/);
    expect(() => launch(address, address, new Uint8Array(4), 1)).toThrow(/parameter 2.*4 bytes/);
    expect(() => add.launch([0, 1, 1], 32, 0, [address, address, address, 1])).toThrow(/\[0, 1, 1\]/);
    expect(() => add.launch([1, 1, 1], 2048, 0, [address, address, address, 1])).toThrow(/1 to 1024 threads/);
  });

  it('names a source, a kernel, a parameter or a header that is none, and what does not compile', () => {
    const gpu = openEmulatedGpu();
    const missing = new URL('nowhere.cu', import.meta.url);
    expect(() => gpu.kernel({ ...spec, source: missing })).toThrow(DeviceError);
    expect(() => gpu.kernel({ ...spec, source: missing })).toThrow(/nowhere\.cu cannot be read: ENOENT/);
    expect(() => gpu.kernel({ ...spec, source: new URL('https://example.org/k.cu') })).toThrow(DeviceError);
    expect(() => gpu.kernel({ ...spec, name: 'subtract' })).toThrow(
      /cuModuleGetFunction\(subtract, looked for in \S+\.cu, which must declare it extern "C" __global__\).*not found/,
    );
    expect(() => gpu.kernel({ ...spec, parameters: 'pppq' })).toThrow(/"q" in "pppq" is no parameter/);
    expect(() => gpu.kernel({ ...spec, defines: { float: 'nonsense' } })).toThrow(KernelCompileError);
  });
});

describe('GpuMemory', () => {
  it('gives back what was written, in parts and as other types', () => {
    using memory = openEmulatedGpu().upload(Float64Array.of(1.5, -2));
    expect(memory.byteLength).toBe(16);
    memory.write(Uint8Array.of(0, 0), 14).write(new Float32Array(0), 16);
    expect([...memory.read(new Float64Array(1))]).toEqual([1.5]);
    const bytes = new Uint8Array(20);
    memory.read(bytes.subarray(2, 10));
    expect([...new Uint8Array(Float64Array.of(1.5).buffer)]).toEqual([...bytes.subarray(2, 10)]);
    expect([...memory.read(new Float64Array(2))]).toEqual([1.5, 0]);
  });

  it('takes empty arrays and no bytes', () => {
    const gpu = openEmulatedGpu();
    using empty = gpu.upload(new Float32Array(0));
    using none = gpu.allocateMemory(0);
    expect([empty.byteLength, none.byteLength]).toEqual([0, 0]);
    expect(empty.read(new Float32Array(0))).toHaveLength(0);
    expect(() => empty.write(new Uint8Array(1))).toThrow(/1 bytes at 0 reach beyond the 0/);
  });

  it('refuses to read and write beyond its end', () => {
    using memory = openEmulatedGpu().allocateMemory(8);
    expect(() => memory.write(new Float32Array(3))).toThrow(
      /GpuMemory\.write: 12 bytes at 0 reach beyond the 8/,
    );
    expect(() => memory.read(new Uint8Array(1), 8)).toThrow(
      /GpuMemory\.read: 1 bytes at 8 reach beyond the 8/,
    );
    expect(() => memory.read(new Uint8Array(1), -1)).toThrow(/the offset/);
  });

  it('is not used once it was freed, which may happen twice', () => {
    const gpu = openEmulatedGpu();
    const memory = gpu.allocateMemory(1000);
    const before = gpu.memoryStatistics();
    memory.free();
    memory.free();
    memory[Symbol.dispose]();
    for (const use of [
      () => memory.address,
      () => memory.write(new Uint8Array(1)),
      () => memory.read(new Uint8Array(1)),
    ]) {
      expect(use).toThrow(DisposedError);
      expect(use).toThrow(/was freed/);
    }
    const after = gpu.memoryStatistics();
    expect([before.allocatedBytes, before.liveStorages]).toEqual([1024, 1]);
    expect([after.allocatedBytes, after.liveStorages]).toEqual([0, 0]);
  });

  it('says what was asked, held and free when there is no more, and goes on', () => {
    const gpu = openEmulatedGpu({ memoryBytes: 64 * mebibyte });
    const held = gpu.allocateMemory(40 * mebibyte);
    expect(() => gpu.allocateMemory(30 * mebibyte)).toThrow(OutOfMemoryError);
    expect(() => gpu.upload(new Uint8Array(30 * mebibyte))).toThrow(
      /cuda:0 is out of memory: asked for 30\.0 MiB, this process holds 40\.0 MiB, free are 24\.0 MiB/,
    );
    held.free();
    gpu.allocateMemory(60 * mebibyte).free();
  });

  it('is handed out again only after the streams that it was used on', () => {
    for (let seed = 1; seed <= 12; seed++) {
      const gpu = openEmulatedGpu({ memoryBytes: 2 ** 26, seed });
      const other = gpu.createStream();
      using pinned = gpu.allocatePinned(4);
      const first = gpu.upload(Float32Array.of(1));
      other.waitFor(gpu.recordEvent());
      gpu.onStream(other, () => other.copy(pinned.address, first.address, 4));
      first.free();
      using second = gpu.upload(Float32Array.of(2));
      gpu.synchronize();
      expect(new Float32Array(pinned.bytes.slice().buffer)[0]).toBe(1);
      expect(second.read(new Float32Array(1))[0]).toBe(2);
    }
  });
});

describe('Gpu', () => {
  it('shares memory and streams with the others of its parts', () => {
    const gpu = openEmulatedGpu();
    const same = new Gpu(gpu.parts);
    using memory = gpu.upload(Uint8Array.of(7));
    expect(same.allocatedBytes).toBe(512);
    const stream = same.createStream();
    gpu.onStream(stream, () => expect(same.stream).toBe(stream));
    expect(memory.read(new Uint8Array(1))[0]).toBe(7);
    expect(() => openEmulatedGpu().onStream(stream, () => {})).toThrow(/none of cuda:0's/);
  });

  it('tells what it is', () => {
    const gpu = openEmulatedGpu();
    expect(gpu).toMatchObject({ index: 0, label: 'cuda:0', name: 'Emulated GPU' });
    expect(gpu.properties()).toMatchObject({ computeCapability: '8.0', multiprocessors: 2 });
  });
});
