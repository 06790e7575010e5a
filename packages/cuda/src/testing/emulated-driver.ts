import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';
import { type DriverFunctions, notReady, outOfMemory } from '../driver/driver.ts';
import { EmulatedGraphs } from './emulated-graphs.ts';
import { EmulatedMemory } from './emulated-memory.ts';
import { EmulatedQueues } from './emulated-queues.ts';
import { give, giveHandle, giveInt, readAt } from './out-parameters.ts';
import {
  captureUnsupported,
  capturedEvent,
  invalidHandle,
  invalidValue,
  notFound,
  notSupported,
  results,
} from './emulated-results.ts';

/** What an emulated GPU claims to be: its L2 cache so small that few numbers fit. */
export const emulatedMultiprocessors = 2;
const l2Bytes = 128;

const attributes: Record<number, number> = {
  13: 1_000_000,
  16: emulatedMultiprocessors,
  36: 1_000_000,
  37: 64,
  38: l2Bytes,
  39: 2048,
  75: 8,
  76: 0,
  81: 101_376,
  97: 101_376,
};

/** What new memory holds: NaN in every floating-point dtype. */
const poison = 0xff;

interface EmulatedKernel {
  readonly name: string;
  /** Copies the arguments of a launch; gives their address. */
  readonly copy: (captured: number) => number;
  readonly capture: (packed: number, pointers: number) => number;
  /** Runs it on captured arguments, which it frees; gives a CUresult. */
  readonly run: (
    arguments_: number,
    gridX: number,
    gridY: number,
    gridZ: number,
    threads: number,
    sharedBytes: number,
    seed: number,
  ) => number;
}

/** A stand-in for libcuda: device memory is the host's, and work runs on the CPU when something waits for it. */
export class EmulatedDriver {
  readonly functions: DriverFunctions;
  readonly queues: EmulatedQueues;
  readonly #deviceMemory = new EmulatedMemory();
  readonly #libc = koffi.load('libc.so.6');
  readonly #malloc = this.#libc.func('uintptr_t aligned_alloc(size_t alignment, size_t bytes)');
  readonly #free = this.#libc.func('void free(uintptr_t address)');
  readonly #memcpy = this.#libc.func('uintptr_t memcpy(uintptr_t to, uintptr_t from, size_t bytes)');
  readonly #memset = this.#libc.func('uintptr_t memset(uintptr_t to, int value, size_t bytes)');
  readonly #modules: ReturnType<typeof koffi.load>[] = [];
  readonly #kernels: EmulatedKernel[] = [];
  /** Bytes of device and of page-locked memory by address. */
  readonly #segments = new Map<number, number>();
  readonly #pinned = new Map<number, number>();
  readonly #memoryBytes: number;
  readonly #onLaunch: (activities: number) => void;
  #freeBytes: number;
  /** The CUresult of a kernel that failed, for every call from then on. */
  #failure = 0;
  #failedKernel = '';

  constructor(memoryBytes: number, onLaunch: (activities: number) => void, seed: number) {
    this.#memoryBytes = memoryBytes;
    this.#freeBytes = memoryBytes;
    this.#onLaunch = onLaunch;
    this.queues = new EmulatedQueues(seed);
    const table: Record<keyof DriverFunctions, (...arguments_: never[]) => number> = {
      ...this.#facts(),
      ...this.#memory(),
      ...this.#code(),
      ...this.#ordering(),
      ...new EmulatedGraphs({
        queues: this.queues,
        after: (action) => this.#after(action),
        launchWork: (arguments_) => this.#launchWork(arguments_, true),
        launched: (activities) => this.#onLaunch(activities),
      }).functions(),
    };
    this.functions = table as unknown as DriverFunctions;
  }

  /** What a CUresult means. */
  describe(result: number): string {
    const where = result === this.#failure ? ` in kernel ${this.#failedKernel}` : '';
    return `CUresult ${result}, ${results[result] ?? 'an error'}${where}`;
  }

  #facts() {
    return {
      cuInit: () => 0,
      cuDriverGetVersion: (out: number) => giveInt(out, 13_000),
      cuDeviceGetCount: (out: number) => giveInt(out, 1),
      cuDeviceGet: (out: number, ordinal: number) => giveInt(out, ordinal),
      cuDeviceGetName: (out: number) => give(out, Buffer.from('Emulated GPU\0')),
      cuDeviceGetUuid: (out: number) => give(out, Buffer.alloc(16, 7)),
      cuDeviceGetPCIBusId: (out: number) => give(out, Buffer.from('0000:00:00.0\0')),
      cuDeviceGetAttribute: (out: number, attribute: number) => giveInt(out, attributes[attribute]!),
      cuDeviceTotalMem: (out: number) => giveHandle(out, this.#memoryBytes),
      cuDevicePrimaryCtxRetain: (out: number) => giveHandle(out, 1),
      cuCtxSetCurrent: () => 0,
      cuMemGetInfo: (free: number, total: number) =>
        giveHandle(free, this.#freeBytes) + giveHandle(total, this.#memoryBytes),
    };
  }

  #memory() {
    return {
      cuMemAlloc: (out: number, bytes: number) => this.#allocate(out, bytes),
      cuMemFree: (address: number) => this.#release(address),
      cuMemGetAddressRange: (start: number, size: number, address: number) => {
        for (const [from, bytes] of this.#segments)
          if (from <= address && address < from + bytes)
            return giveHandle(start, from) + giveHandle(size, bytes);
        return invalidValue;
      },
      cuIpcGetMemHandle: (out: number, address: number) => give(out, this.#deviceMemory.handleOf(address)),
      cuIpcOpenMemHandle: (out: number, handle: { readonly reserved: Uint8Array }) => {
        const address = this.#deviceMemory.open(handle.reserved);
        return address === null ? invalidValue : giveHandle(out, address);
      },
      cuIpcCloseMemHandle: (address: number) => {
        this.queues.synchronize();
        return this.#deviceMemory.close(address) ? 0 : invalidValue;
      },
      cuMemHostAlloc: (out: number, bytes: number) => {
        const address = this.#malloc(4096, Math.ceil(bytes / 4096) * 4096) as number;
        this.#pinned.set(address, bytes);
        return giveHandle(out, address);
      },
      cuMemFreeHost: (address: number) => {
        if (!this.#pinned.delete(address)) return invalidValue;
        this.#free(address);
        return 0;
      },
      cuMemcpyAsync: (to: number, from: number, bytes: number, stream: number) =>
        this.#copy(to, from, bytes, stream),
      cuMemsetD8Async: (to: number, value: number, bytes: number, stream: number) =>
        this.#queue(stream, () => this.#memset(to, value, bytes)),
    };
  }

  #code() {
    return {
      cuModuleLoadData: (out: number, image: Uint8Array) => this.#loadModule(out, image),
      cuModuleGetFunction: (out: number, module: number, name: string) => this.#findKernel(out, module, name),
      cuFuncSetAttribute: () => 0,
      // Kernels that g++ compiled have no registers of a GPU.
      cuFuncGetAttribute: (out: number) => giveInt(out, 0),
      cuLaunchKernel: (...arguments_: number[]) => this.#launch(arguments_),
      cuLaunchKernelEx: (config: number, kernel: number, parameters: number, extra: number) => {
        const words = readAt(config, 40);
        const sizes = Array.from({ length: 7 }, (_, i) => words.getUint32(4 * i, true));
        return this.#launch([kernel, ...sizes, Number(words.getBigUint64(32, true)), parameters, extra]);
      },
      cuTensorMapEncodeTiled: () => notSupported,
    };
  }

  #ordering() {
    const { queues } = this;
    return {
      cuStreamCreateWithPriority: (out: number) => giveHandle(out, queues.createStream()),
      cuStreamSynchronize: (stream: number) =>
        queues.capturedBy(stream) ? captureUnsupported : this.#after(() => queues.synchronizeStream(stream)),
      cuStreamWaitEvent: (stream: number, event: number) => queues.waitFor(stream, event) || this.#failure,
      cuLaunchHostFunc: (stream: number, hostFunction: number, argument: number) =>
        this.#after(() =>
          queues.push(stream, () => koffi.call(BigInt(hostFunction), hostFunctionType(), argument), false),
        ),
      cuEventCreate: (out: number) => giveHandle(out, queues.createEvent()),
      cuEventRecord: (event: number, stream: number) => this.#after(() => queues.record(event, stream)),
      cuEventQuery: (event: number) => {
        if (queues.isCaptured(event)) return capturedEvent;
        return queues.hasCompleted(event) ? this.#failure : notReady;
      },
      cuEventSynchronize: (event: number) =>
        queues.isCaptured(event) ? capturedEvent : this.#after(() => queues.synchronizeEvent(event)),
      cuEventElapsedTime: (out: number, start: number, end: number) => {
        const elapsedMs = queues.elapsedMs(start, end);
        return elapsedMs === null ? notReady : give(out, new Float32Array([elapsedMs]));
      },
    };
  }

  /** What comes of a call that waits or orders: the failure of a kernel that has run, if one has. */
  #after(action: () => void): number {
    action();
    return this.#failure;
  }

  #queue(stream: number, run: () => void): number {
    return this.#after(() => this.queues.push(stream, run));
  }

  // The driver reads pageable memory before the call returns, and writes it before it does.
  #copy(to: number, from: number, bytes: number, stream: number): number {
    if (!this.#isQueuedMemory(from)) {
      const held = this.#malloc(64, Math.ceil(bytes / 64) * 64) as number;
      this.#memcpy(held, from, bytes);
      return this.#queue(stream, () => {
        this.#memcpy(to, held, bytes);
        this.#free(held);
      });
    }
    const result = this.#queue(stream, () => this.#memcpy(to, from, bytes));
    if (!this.#isQueuedMemory(to)) this.queues.synchronizeStream(stream);
    return result;
  }

  #isQueuedMemory(address: number): boolean {
    for (const ranges of [this.#segments, this.#pinned])
      for (const [start, bytes] of ranges) if (start <= address && address < start + bytes) return true;
    return this.#deviceMemory.hasOpened(address);
  }

  #allocate(out: number, bytes: number): number {
    if (bytes > this.#freeBytes) return outOfMemory;
    this.#freeBytes -= bytes;
    const address = this.#deviceMemory.allocate(bytes);
    this.#memset(address, poison, bytes);
    this.#segments.set(address, bytes);
    return giveHandle(out, address);
  }

  #release(address: number): number {
    const bytes = this.#segments.get(address);
    if (bytes === undefined) return invalidValue;
    this.queues.synchronize();
    this.#freeBytes += bytes;
    this.#segments.delete(address);
    this.#deviceMemory.free(address);
    return 0;
  }

  #loadModule(out: number, image: Uint8Array): number {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-emulator-'));
    const path = join(folder, 'module.so');
    writeFileSync(path, image);
    const handle = this.#modules.push(koffi.load(path)) - 1;
    rmSync(folder, { recursive: true });
    return giveHandle(out, handle);
  }

  #findKernel(out: number, module: number, name: string): number {
    const library = this.#modules[module]!;
    let kernel: EmulatedKernel;
    try {
      kernel = {
        name,
        capture: library.func(`uintptr_t capture_${name}(uintptr_t packed, uintptr_t pointers)`),
        copy: library.func(`uintptr_t copy_${name}(uintptr_t captured)`),
        run: library.func(
          `int run_${name}(uintptr_t arguments, uint x, uint y, uint z, uint threads, uint sharedBytes, uint seed)`,
        ),
      };
    } catch {
      return notFound;
    }
    return giveHandle(out, this.#kernels.push(kernel) - 1);
  }

  // Arguments are read during the call. `extra`, if there is one, holds the address of packed ones in its second word.
  #launch([handle, x, y, z, threads, , , sharedBytes, stream, parameters, extra]: number[]): number {
    const isRepeated = this.queues.capturedBy(stream!) !== null;
    const work = this.#launchWork(
      [handle!, x!, y!, z!, threads!, 1, 1, sharedBytes!, stream!, parameters!, extra!],
      isRepeated,
    );
    if (!work) return invalidHandle;
    const result = this.#queue(stream!, work);
    this.#onLaunch(isRepeated ? 0 : 1);
    return result;
  }

  /** What runs a launch, once or, in a graph, often; null for a kernel that is not there. */
  #launchWork(
    [handle, x, y, z, threads, , , sharedBytes, , parameters, extra]: readonly number[],
    isRepeated: boolean,
  ): (() => void) | null {
    const kernel = this.#kernels[handle!];
    if (!kernel) return null;
    const packed = extra === 0 ? 0 : Number(readAt(extra!, 16).getBigUint64(8, true));
    const arguments_ = kernel.capture(packed, parameters!);
    const seed = this.queues.random();
    return () => {
      if (this.#failure !== 0) return;
      // Running frees the arguments.
      const own = isRepeated ? kernel.copy(arguments_) : arguments_;
      this.#failure = kernel.run(own, x!, y!, z!, threads!, sharedBytes!, seed);
      this.#failedKernel = kernel.name;
    };
  }
}

let hostFunction: ReturnType<typeof koffi.proto> | null = null;

function hostFunctionType(): ReturnType<typeof koffi.proto> {
  hostFunction ??= koffi.proto('void RooflineHostFunction(uintptr_t argument)');
  return hostFunction;
}
