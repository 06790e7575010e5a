import {
  type DeviceBuffer,
  DeviceError,
  type DeviceEvent,
  type MemoryObserver,
  type MemorySegment,
  type MemoryStatistics,
} from '@roofline/cuda/host';
import type { MemoryView } from '../../base/memory-view.ts';
import { arch, availableParallelism, cpus, totalmem } from 'node:os';
import type { Device } from '../../tensor/device.ts';
import type { Op } from '../../op/op.ts';
import { BufferPool, type CpuBuffer, type SystemMemory } from '../../onnx/buffer-pool.ts';
import { emptyArena } from '../../onnx/arena.ts';
import { findOnnxRuntime } from '../../onnx/find-onnx-runtime.ts';
import { OpRunner } from './lowering/op-runner.ts';
import { cpuThreads } from '../../onnx/threads.ts';

const systemMemory: SystemMemory = {
  availableBytes: () => process.availableMemory(),
  totalBytes: () => Math.min(totalmem(), process.constrainedMemory() || Infinity),
  giveBack: emptyArena,
};

/** The processor, driven through ONNX Runtime. Ops have finished when `run` returns. */
export class CpuDevice implements Device {
  readonly type = 'cpu';
  readonly index = 0;
  readonly label = 'cpu';
  readonly name: string;
  readonly #pool = new BufferPool(systemMemory);
  readonly #runner = new OpRunner(this.#pool);

  constructor() {
    this.name = cpus()[0]?.model.trim() ?? arch();
  }

  allocate(byteLength: number): DeviceBuffer {
    return this.#pool.allocate(byteLength, 'storage');
  }

  free(buffer: DeviceBuffer): void {
    this.#pool.free(buffer as CpuBuffer);
  }

  write(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void {
    bytesOf(buffer as CpuBuffer, byteOffset, bytes.length).set(bytes);
  }

  read(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void {
    bytes.set(bytesOf(buffer as CpuBuffer, byteOffset, bytes.length));
  }

  run<A>(op: Op<A>, inputs: readonly MemoryView[], outputs: readonly MemoryView[], attributes: A): void {
    this.#runner.run(op, inputs, outputs, attributes);
  }

  recordEvent(): DeviceEvent {
    return new CpuEvent();
  }

  /** Nothing is ever under way. */
  synchronize(): void {}

  get allocatedBytes(): number {
    return this.#pool.allocatedBytes;
  }

  memoryStatistics(): MemoryStatistics {
    return this.#pool.statistics();
  }

  resetPeakMemory(): void {
    this.#pool.resetPeak();
  }

  observeMemory(observer: MemoryObserver | null): MemoryObserver | null {
    const before = this.#pool.observer;
    this.#pool.observer = observer;
    return before;
  }

  memorySegments(): MemorySegment[] {
    return this.#pool.segments();
  }

  emptyCache(): void {
    this.#pool.emptyCache();
    emptyArena();
  }

  properties(): Record<string, string | number> {
    return {
      name: this.name,
      architecture: arch(),
      logicalProcessors: availableParallelism(),
      threads: cpuThreads(),
      memoryBytes: systemMemory.totalBytes(),
      onnxruntime: findOnnxRuntime().version,
    };
  }
}

class CpuEvent implements DeviceEvent {
  readonly #timeMs = performance.now();

  elapsedMs(earlier: DeviceEvent): number {
    if (!(earlier instanceof CpuEvent)) {
      throw new DeviceError('elapsedMs: the earlier event was recorded on another kind of device.');
    }
    return this.#timeMs - earlier.#timeMs;
  }
}

function bytesOf({ memory, byteOffset }: CpuBuffer, start: number, length: number): Uint8Array {
  return new Uint8Array(memory, byteOffset + start, length);
}

let opened: CpuDevice | null = null;

/** The CPU device; the same object every time. The first op loads ONNX Runtime. */
export function openCpuDevice(): CpuDevice {
  opened ??= new CpuDevice();
  return opened;
}
