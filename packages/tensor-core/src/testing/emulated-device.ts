import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';
import { KernelBuilder } from '../devices/cuda/compile/compile.ts';
import { CudaDevice, type DeviceParts } from '../devices/cuda/device.ts';
import { CudaDriver, type DriverFunctions } from '../devices/cuda/driver/driver.ts';
import { KernelCache } from '../devices/cuda/compile/kernel-cache.ts';
import { EmulatedCompiler } from './emulated-compiler.ts';
import { EmulatedMatmul } from './emulated-matmul.ts';

export { hostCompilerVersion } from './emulated-compiler.ts';

/** What an emulated GPU claims to be. */
export const emulatedMultiprocessors = 2;

const attributes: Record<number, number> = {
  13: 1_000_000,
  16: emulatedMultiprocessors,
  36: 1_000_000,
  37: 64,
  38: 2 ** 20,
  39: 2048,
  75: 8,
  76: 0,
  81: 101_376,
  97: 101_376,
};

/**
 * A CudaDevice whose memory is the host's and whose kernels run on the CPU, by a stand-in for libcuda. `onLaunch` is
 * called inside every launch; float32 products are JavaScript's unless others are given.
 */
export function openEmulatedDevice(
  memoryBytes = 2 ** 30,
  onLaunch = () => {},
  makeFloat32Product: DeviceParts['makeFloat32Product'] = () => new EmulatedMatmul(),
): CudaDevice {
  const cache = new KernelCache(join(tmpdir(), 'roofline-emulated-kernels'));
  const compiler = new EmulatedCompiler();
  const driver = new CudaDriver(
    new EmulatedDriver(memoryBytes, onLaunch).functions,
    (result) => `CUresult ${result}`,
  );
  return new CudaDevice(driver, 0, {
    makeBuilder: (architecture) => new KernelBuilder(architecture, () => compiler, cache),
    makeFloat32Product,
  });
}

class EmulatedDriver {
  readonly functions: DriverFunctions;
  readonly #libc = koffi.load('libc.so.6');
  readonly #malloc = this.#libc.func('uintptr_t aligned_alloc(size_t alignment, size_t bytes)');
  readonly #free = this.#libc.func('void free(uintptr_t address)');
  readonly #toDevice = this.#libc.func('uintptr_t memcpy(uintptr_t to, const void *from, size_t bytes)');
  readonly #fromDevice = this.#libc.func('uintptr_t memcpy(void *to, uintptr_t from, size_t bytes)');
  readonly #memset = this.#libc.func('uintptr_t memset(uintptr_t to, int value, size_t bytes)');
  readonly #modules: ReturnType<typeof koffi.load>[] = [];
  readonly #kernels: ((...arguments_: number[]) => void)[] = [];
  readonly #eventTimes: number[] = [0];
  readonly #folder = mkdtempSync(join(tmpdir(), 'roofline-emulator-'));
  readonly #sizes = new Map<number, number>();
  readonly #onLaunch: () => void;
  #freeBytes: number;

  constructor(memoryBytes: number, onLaunch: () => void) {
    this.#freeBytes = memoryBytes;
    this.#onLaunch = onLaunch;
    const success = (action: () => void) => {
      action();
      return 0;
    };
    const table: Partial<Record<keyof DriverFunctions, (...arguments_: never[]) => number>> = {
      cuDriverGetVersion: (out: number) => this.#giveInt(out, 13_000),
      cuDeviceGetCount: (out: number) => this.#giveInt(out, 1),
      cuDeviceGet: (out: number, ordinal: number) => this.#giveInt(out, ordinal),
      cuDeviceGetName: (out: number) => success(() => this.#toDevice(out, Buffer.from('Emulated GPU\0'), 13)),
      cuDeviceGetUuid: (out: number) => success(() => this.#toDevice(out, Buffer.alloc(16, 7), 16)),
      cuDeviceGetAttribute: (out: number, attribute: number) => this.#giveInt(out, attributes[attribute]!),
      cuDeviceTotalMem: (out: number) => this.#giveHandle(out, memoryBytes),
      cuDevicePrimaryCtxRetain: (out: number) => this.#giveHandle(out, 1),
      cuCtxSetCurrent: () => 0,
      cuMemGetInfo: (free: number, total: number) =>
        this.#giveHandle(free, this.#freeBytes) + this.#giveHandle(total, memoryBytes),
      cuMemAlloc: (out: number, bytes: number) => this.#allocate(out, bytes),
      cuMemFree: (address: number) => this.#release(address),
      cuMemHostAlloc: (out: number, bytes: number) =>
        this.#giveHandle(out, this.#malloc(4096, bytes) as number),
      cuMemcpyHtoDAsync: (to: number, from: Uint8Array, bytes: number) =>
        success(() => this.#toDevice(to, from, bytes)),
      cuMemcpyDtoHAsync: (to: Uint8Array, from: number, bytes: number) =>
        success(() => this.#fromDevice(to, from, bytes)),
      cuMemsetD8Async: (to: number, value: number, bytes: number) =>
        success(() => this.#memset(to, value, bytes)),
      cuModuleLoadData: (out: number, image: Uint8Array) => this.#loadModule(out, image),
      cuModuleGetFunction: (out: number, module: number, name: string) => this.#findKernel(out, module, name),
      cuFuncSetAttribute: () => 0,
      cuLaunchKernel: (...arguments_: number[]) => this.#launch(arguments_),
      cuStreamCreate: (out: number) => this.#giveHandle(out, 1),
      cuStreamSynchronize: () => 0,
      cuStreamWaitEvent: () => 0,
      cuEventCreate: (out: number) => this.#giveHandle(out, this.#eventTimes.push(0) - 1),
      cuEventRecord: (event: number) => success(() => (this.#eventTimes[event] = performance.now())),
      cuEventSynchronize: () => 0,
      cuEventElapsedTime: (out: number, start: number, end: number) =>
        this.#give(out, new Float32Array([this.#eventTimes[end]! - this.#eventTimes[start]!])),
    };
    this.functions = table as unknown as DriverFunctions;
  }

  #allocate(out: number, bytes: number): number {
    if (bytes > this.#freeBytes) return 2;
    this.#freeBytes -= bytes;
    const address = this.#malloc(2 ** 21, bytes) as number;
    this.#sizes.set(address, bytes);
    return this.#giveHandle(out, address);
  }

  #release(address: number): number {
    this.#freeBytes += this.#sizes.get(address)!;
    this.#free(address);
    return 0;
  }

  #loadModule(out: number, image: Uint8Array): number {
    const path = join(this.#folder, `module-${this.#modules.length}.so`);
    writeFileSync(path, image);
    return this.#giveHandle(out, this.#modules.push(koffi.load(path)) - 1);
  }

  #findKernel(out: number, module: number, name: string): number {
    const prototype = `void emulate_${name}(uintptr_t packed, uintptr_t pointers, uint x, uint y, uint z, uint threads)`;
    return this.#giveHandle(out, this.#kernels.push(this.#modules[module]!.func(prototype)) - 1);
  }

  // `extra`, if there is one, holds the address of the packed arguments in its second word.
  #launch([kernel, gridX, gridY, gridZ, threads, , , , , parameters, extra]: number[]): number {
    const words = new BigUint64Array(5);
    if (extra !== 0) this.#fromDevice(new Uint8Array(words.buffer), extra!, 40);
    this.#kernels[kernel!]!(Number(words[1]), parameters!, gridX!, gridY!, gridZ!, threads!);
    this.#onLaunch();
    return 0;
  }

  #giveInt(out: number, value: number): number {
    return this.#give(out, new Int32Array([value]));
  }

  #giveHandle(out: number, value: number): number {
    return this.#give(out, new BigUint64Array([BigInt(value)]));
  }

  #give(out: number, value: Int32Array | BigUint64Array | Float32Array): number {
    this.#toDevice(out, new Uint8Array(value.buffer), value.byteLength);
    return 0;
  }
}
