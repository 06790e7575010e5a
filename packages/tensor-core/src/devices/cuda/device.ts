import type { MemoryView } from '../../op/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { Device, MemoryStatistics } from '../device.ts';
import { DeviceError, OutOfMemoryError, RooflineError } from '../../errors.ts';
import type { AllocationKind, MemoryObserver, MemorySegment } from '../../memory/observer.ts';
import type { Op } from '../../op/op.ts';
import { type Block, CachingAllocator } from './memory/allocator.ts';
import { architectureOf } from './architecture.ts';
import { KernelBuilder } from './compile/compile.ts';
import { type CudaDriver, countDevices, loadDriver, outOfMemory } from './driver/driver.ts';
import { type CudaEvent, EventPool } from './driver/event.ts';
import { Launcher } from './launch/launch.ts';
import { libraries, loadLibrary } from './driver/library-search.ts';
import { CudaLowering } from './lower.ts';
import { KernelModules } from './compile/modules.ts';
import type { Float32Product } from './matmul/matmul.ts';
import { type PermanentMemory, SplitHalfProduct } from './matmul/matmul-split-half.ts';
import { startNvtx } from './profiling/nvtx.ts';
import { type DeviceFacts, describeFacts, readFacts } from './properties.ts';
import { StagingBuffer } from './memory/staging.ts';
import { CudaStream } from './driver/stream.ts';

/** What a device gets from outside, so that tests can stand in for it. */
export interface DeviceParts {
  makeBuilder(architecture: string): KernelBuilder;
  /** Another way than cublasLt to multiply float32 matrices, if this GPU has one. */
  makeFloat32Product(
    context: CudaContext,
    driver: CudaDriver,
    permanent: PermanentMemory,
  ): Float32Product | null;
}

const nvidiaParts: DeviceParts = {
  makeBuilder: (architecture) => new KernelBuilder(architecture),
  makeFloat32Product: (context, driver, permanent) =>
    context.properties.computeCapability === 90 ? new SplitHalfProduct(context, driver, permanent) : null,
};

/** The context that this thread's driver calls go to. */
let currentContext = 0;

/** An NVIDIA GPU: one stream, one allocator. Open it with `device('cuda:0')`. */
export class CudaDevice implements Device {
  readonly type = 'cuda';
  readonly index: number;
  readonly label: string;
  readonly name: string;
  readonly facts: DeviceFacts;
  /** All ops of this device run here, in order. */
  readonly stream: CudaStream;
  readonly #driver: CudaDriver;
  readonly #context: number;
  readonly #events: EventPool;
  readonly #allocator: CachingAllocator;
  readonly #lowering: CudaLowering;
  #staging: StagingBuffer | null = null;
  #liveStorages = 0;

  constructor(driver: CudaDriver, index: number, parts: DeviceParts = nvidiaParts) {
    const { functions } = driver;
    this.#driver = driver;
    this.index = index;
    this.label = `cuda:${index}`;
    const handle = driver.intFrom('cuDeviceGet', (out) => functions.cuDeviceGet(out, index));
    this.facts = readFacts(driver, handle);
    this.name = this.facts.name;
    const builder = parts.makeBuilder(architectureOf(this.facts.computeCapability));
    this.#context = driver.handleFrom('cuDevicePrimaryCtxRetain', (out) =>
      functions.cuDevicePrimaryCtxRetain(out, handle),
    );
    this.makeCurrent();
    this.stream = new CudaStream(driver);
    this.#events = new EventPool(driver);
    this.#allocator = new CachingAllocator({
      reserve: (bytes) => this.#reserve(bytes),
      release: (address) => this.#release(address),
    });
    const launcher = new Launcher(driver, this.stream);
    this.#lowering = new CudaLowering({
      driver,
      launcher,
      stream: this.stream,
      modules: new KernelModules(driver, builder, launcher),
      properties: this.facts,
      memory: this,
      makeFloat32Product: (context) =>
        parts.makeFloat32Product(context, driver, (byteLength) => this.allocateBlock(byteLength).address),
    });
  }

  /** Directs this thread's driver calls to this device. Every method here does so itself. */
  makeCurrent(): void {
    if (currentContext === this.#context) return;
    this.#driver.check(this.#driver.functions.cuCtxSetCurrent(this.#context), 'cuCtxSetCurrent');
    currentContext = this.#context;
  }

  allocate(byteLength: number): Block {
    const block = this.#take(byteLength, 'storage');
    this.#liveStorages++;
    return block;
  }

  free(buffer: Block): void {
    this.#allocator.free(buffer);
    this.#liveStorages--;
  }

  /** Memory that no storage owns: workspaces, buffers of other libraries. Throws an OutOfMemoryError. */
  allocateBlock(byteLength: number): Block {
    return this.#take(byteLength, 'workspace');
  }

  freeBlock(block: Block): void {
    this.#allocator.free(block);
  }

  write(buffer: Block, byteOffset: number, bytes: Uint8Array): void {
    this.makeCurrent();
    this.#stagingBuffer().upload(buffer.address + byteOffset, bytes);
  }

  read(buffer: Block, byteOffset: number, bytes: Uint8Array): void {
    this.makeCurrent();
    this.#stagingBuffer().download(buffer.address + byteOffset, bytes);
  }

  run<A>(op: Op<A>, inputs: readonly MemoryView[], outputs: readonly MemoryView[], attributes: A): void {
    this.makeCurrent();
    this.#lowering.run(op, inputs, outputs, attributes);
  }

  recordEvent(): CudaEvent {
    this.makeCurrent();
    return this.#events.record(this.stream);
  }

  synchronize(): void {
    this.makeCurrent();
    this.stream.synchronize();
  }

  get allocatedBytes(): number {
    return this.#allocator.statistics.allocatedBytes;
  }

  memoryStatistics(): MemoryStatistics {
    return { ...this.#allocator.statistics, liveStorages: this.#liveStorages, ...this.#memoryInfo() };
  }

  resetPeakMemory(): void {
    this.#allocator.resetPeaks();
  }

  emptyCache(): void {
    this.synchronize();
    this.#allocator.emptyCache();
  }

  observeMemory(observer: MemoryObserver | null): MemoryObserver | null {
    const before = this.#allocator.observer;
    this.#allocator.observer = observer;
    return before;
  }

  memorySegments(): MemorySegment[] {
    return this.#allocator.segments();
  }

  properties(): Record<string, string | number> {
    return describeFacts(this.facts);
  }

  #take(byteLength: number, kind: AllocationKind): Block {
    const block = this.#allocator.allocate(byteLength, kind);
    if (block) return block;
    throw new OutOfMemoryError({
      device: this.label,
      requestedBytes: byteLength,
      heldBytes: this.#allocator.statistics.reservedBytes,
      freeBytes: this.#memoryInfo().freeBytes,
    });
  }

  #stagingBuffer(): StagingBuffer {
    this.#staging ??= new StagingBuffer(this.#driver, this.stream, this.#events);
    return this.#staging;
  }

  #reserve(bytes: number): number | null {
    this.makeCurrent();
    const { functions, result } = this.#driver;
    const status = functions.cuMemAlloc(result.address, bytes);
    if (status === outOfMemory) return null;
    this.#driver.check(status, 'cuMemAlloc');
    return result.readUint64(0);
  }

  // cuMemFree waits for the device, so nothing queued can still use the segment.
  #release(address: number): void {
    this.makeCurrent();
    this.#driver.check(this.#driver.functions.cuMemFree(address), 'cuMemFree');
  }

  #memoryInfo(): { freeBytes: number; totalBytes: number } {
    this.makeCurrent();
    const { functions, result } = this.#driver;
    this.#driver.check(functions.cuMemGetInfo(result.address, result.address + 8), 'cuMemGetInfo');
    return { freeBytes: result.readUint64(0), totalBytes: result.readUint64(8) };
  }
}

const opened = new Map<number, CudaDevice>();

/**
 * The GPU of that index, opened at first use; the same object every time. Throws a LibraryNotFoundError without
 * NVIDIA's driver, a DeviceError without such a GPU.
 */
export function openCudaDevice(index = 0): CudaDevice {
  let device = opened.get(index);
  if (!device) {
    const driver = loadDriver();
    const count = countDevices();
    if (index >= count) {
      throw new DeviceError(
        `There is no cuda:${index}: the driver shows ${count} GPU${count === 1 ? '' : 's'}.`,
      );
    }
    startNvtx();
    device = new CudaDevice(driver, index);
    opened.set(index, device);
  }
  return device;
}

/** The GPUs that this process has opened. */
export function openedCudaDevices(): readonly CudaDevice[] {
  return [...opened.values()];
}

/** How many GPUs can be opened. Never throws. */
export function cudaDeviceCount(): number {
  return countDevices();
}

let available: boolean | null = null;

/**
 * Whether `cuda:0` can run ops: a GPU of compute capability 8.0 or newer, with NVRTC and cublasLt beside the
 * driver. `diagnose` says what is missing. Never throws.
 */
export function cudaAvailable(): boolean {
  available ??= countDevices() > 0 && canRunOps(0);
  return available;
}

function canRunOps(index: number): boolean {
  try {
    const driver = loadDriver();
    const handle = driver.intFrom('cuDeviceGet', (out) => driver.functions.cuDeviceGet(out, index));
    architectureOf(readFacts(driver, handle).computeCapability);
    loadLibrary(libraries.nvrtc);
    loadLibrary(libraries.cublasLt);
    return true;
  } catch (error) {
    if (error instanceof RooflineError) return false;
    throw error;
  }
}
