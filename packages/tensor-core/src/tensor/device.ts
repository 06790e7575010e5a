import type { MemoryView } from '../base/memory-view.ts';
import type {
  DeviceBuffer,
  DeviceEvent,
  MemoryObserver,
  MemorySegment,
  MemoryStatistics,
} from '@roofline/cuda/host';

/** What tensor-core needs of a device. Nothing above this interface knows which device it uses. */
export interface Device {
  readonly type: 'cpu' | 'cuda';
  readonly index: number;
  /** As users write it: `cpu`, `cuda:0`. */
  readonly label: string;
  /** The marketing name, such as `NVIDIA H200`. */
  readonly name: string;

  /** Uninitialised memory. Throws OutOfMemoryError. @internal */
  allocate(byteLength: number): DeviceBuffer;
  /** @internal */
  free(buffer: DeviceBuffer): void;
  /** Copies host bytes into a buffer; returns when `bytes` may be reused. @internal */
  write(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void;
  /** Copies a buffer's bytes to the host, after everything queued before has run. @internal */
  read(buffer: DeviceBuffer, byteOffset: number, bytes: Uint8Array): void;
  /**
   * Queues `op`, made by `defineOp`, after everything queued before. Inputs may be strided views; outputs are contiguous and
   * uninitialised, except that for an op that mutates output `i` is input `op.mutates[i]` itself.
   *
   * @internal
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
  /** Reports every allocation and free to `observer` from now on, or to no one for null; returns the observer before. @internal */
  observeMemory(observer: MemoryObserver | null): MemoryObserver | null;
  /** What the allocator has reserved from the system, and which parts are in use. @internal */
  memorySegments(): MemorySegment[];
  /** Gives cached blocks back to the system, and on the CPU what ONNX Runtime keeps between graphs. */
  emptyCache(): void;
  /** Facts for records: driver, compute capability, multiprocessors, threads... */
  properties(): Record<string, string | number>;
}
