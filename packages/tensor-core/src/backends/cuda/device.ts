import { DeviceError } from '@roofline/cuda/host';
import {
  type Block,
  type CudaDriver,
  Gpu,
  type GpuParts,
  type KernelBuilder,
  type Launcher,
} from '@roofline/cuda/parts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { Device } from '../../tensor/device.ts';
import type { Op } from '../../op/op.ts';
import { type DeviceParts, nvidiaParts } from './device-parts.ts';
import { CudaLowering } from './lower.ts';

/** The parts of a device that capture ops as a CUDA graph. */
export interface DeviceInternals {
  readonly device: CudaDevice;
  readonly driver: CudaDriver;
  readonly launcher: Launcher;
  readonly lowering: CudaLowering;
  readonly builder: KernelBuilder;
}

/**
 * An NVIDIA GPU that runs ops. Open it with `device('cuda:0')`; `cudaDevice` of `@roofline/tensor-core/kernel-api` gives this
 * type. It shares its streams and its memory with the `Gpu` of `@roofline/cuda`: ops are queued on the current stream and take
 * memory from the current pool, which `onStream` and `withPool` change.
 */
export class CudaDevice extends Gpu implements Device {
  readonly type = 'cuda';
  readonly #lowering: CudaLowering;

  constructor(gpu: GpuParts, parts: DeviceParts = nvidiaParts) {
    super(gpu);
    const { driver, facts, launcher, memory, modules, scratch, streams } = gpu;
    this.#lowering = new CudaLowering({
      ...{ device: this, launcher, streams, memory, modules },
      properties: facts,
      makeFloat32Product: (context) => parts.makeFloat32Product(context, driver, scratch, streams),
      loadCublasLt: () => parts.loadCublasLt(),
    });
  }

  allocate(byteLength: number): Block {
    return this.parts.memory.allocateStorage(byteLength);
  }

  /**
   * Allocates at `address`, a multiple of 512 inside free memory of the current pool. Throws a DeviceError where it is not
   * free.
   *
   * @internal
   */
  allocateAt(address: number, byteLength: number): Block {
    const block = this.parts.memory.allocateStorageAt(address, byteLength);
    if (block) return block;
    throw new DeviceError(
      `allocateAt: ${byteLength} bytes at 0x${address.toString(16)} are not free in the current pool.`,
    );
  }

  free(buffer: Block): void {
    this.parts.memory.freeStorage(buffer);
  }

  /**
   * Called with memory inside a block that holds nothing any more; where freed memory is poisoned, it is filled as well.
   *
   * @internal
   */
  discard(address: number, byteLength: number): void {
    this.parts.memory.poison(address, byteLength);
  }

  /**
   * Makes the current stream wait now for everything that freed memory depends on, because a capture cannot.
   *
   * @internal
   */
  awaitFreedMemory(): void {
    this.parts.memory.allocator.endFences();
  }

  write(buffer: Block, byteOffset: number, bytes: Uint8Array): void {
    this.makeCurrent();
    if (this.parts.streams.areSeveral) buffer.usedBy(this.parts.streams.current);
    this.parts.memory.upload(buffer, byteOffset, bytes);
  }

  read(buffer: Block, byteOffset: number, bytes: Uint8Array): void {
    this.makeCurrent();
    this.parts.memory.download(buffer, byteOffset, bytes);
  }

  run<A>(op: Op<A>, inputs: readonly MemoryView[], outputs: readonly MemoryView[], attributes: A): void {
    this.makeCurrent();
    if (this.parts.streams.areSeveral) this.#noteUse(inputs, outputs);
    this.#lowering.run(op, inputs, outputs, attributes);
  }

  /**
   * What captures ops as graphs of this device.
   *
   * @internal
   */
  get internals(): DeviceInternals {
    const { driver, launcher, builder } = this.parts;
    return { device: this, driver, launcher, lowering: this.#lowering, builder };
  }

  /**
   * Makes everything queued on other streams from now on wait for what is queued on the current one so far.
   *
   * @internal
   */
  holdBackOtherStreams(): void {
    this.parts.streams.holdBackOthers();
  }

  // Outputs too: a gradient may go to a buffer that was allocated for another stream.
  #noteUse(...operands: readonly (readonly MemoryView[])[]): void {
    const { current } = this.parts.streams;
    for (const views of operands) for (const { storage } of views) (storage.buffer as Block).usedBy(current);
  }
}
