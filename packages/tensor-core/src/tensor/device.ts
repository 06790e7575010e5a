import type { MemoryView } from '../base/memory-view.ts';
import type {
  DeviceBuffer,
  DeviceEvent,
  MemoryObserver,
  MemorySegment,
  MemoryStatistics,
} from '@roofline/cuda/host';

/** What tensor-core asks of a device. Nothing above this interface knows which device it speaks to. */
export interface Device {
  readonly type: 'cpu' | 'cuda';
  readonly index: number;
  /** As users write it: `cpu`, `cuda:0`. */
  readonly label: string;
  /** The marketing name, such as `NVIDIA H200`. */
  readonly name: string;

  /** Uninitialised memory. Throws OutOfMemoryError. */
  allocate(byteLength: number): DeviceBuffer;
  free(buffer: DeviceBuffer): void;
  /** Copies host bytes into a buffer; returns when `bytes` may be reused. */
  write(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void;
  /** Copies a buffer's bytes to the host, after everything queued before has run. */
  read(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void;
  /**
   * Runs `op`, which `defineOp` gave, queued behind all that was asked before. Inputs may be strided views; outputs are contiguous
   * and uninitialised, except that output `i` is input `op.mutates[i]` itself for an op that mutates.
   */
  run(
    op: { readonly name: string },
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: unknown,
  ): void;

  recordEvent(): DeviceEvent;
  synchronize(): void;
  /** The same as `memoryStatistics().allocatedBytes`, cheap enough to read at every op. */
  readonly allocatedBytes: number;
  memoryStatistics(): MemoryStatistics;
  resetPeakMemory(): void;
  /** Tells `observer` of every allocation and free from now on, or nobody; returns the one before. */
  observeMemory(observer: MemoryObserver | null): MemoryObserver | null;
  /** What the allocator holds of the system, and what of it is handed out. */
  memorySegments(): MemorySegment[];
  /** Gives cached blocks, and on the CPU what ONNX Runtime keeps between graphs, back to the system. */
  emptyCache(): void;
  /** Facts for records: driver, compute capability, multiprocessors, threads... */
  properties(): Record<string, string | number>;
}
