/** What a kernel may choose its shape by. */
export interface CudaProperties {
  readonly multiprocessors: number;
  /** Such as 90 for compute capability 9.0. */
  readonly computeCapability: number;
  readonly l2Bytes: number;
  readonly maxSharedBytesPerBlock: number;
}

/**
 * A kernel in a `.cu` file. `parameters` has one letter for each: p pointer, i int32, u uint32, l int64, f float32,
 * d float64, T a structure passed by value, whose argument is its bytes (the 128 of a CUtensorMap, say).
 */
export interface KernelSpec {
  readonly source: URL;
  readonly name: string;
  readonly parameters: string;
  /** Preprocessor definitions; they select a variant, and are part of the cache key. */
  readonly defines?: Readonly<Record<string, string | number>>;
  /** Texts in the place of headers, by their names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Dynamic shared memory above 48 KiB must be announced. */
  readonly dynamicSharedBytes?: number;
  /**
   * May begin while the kernel queued before it still runs, on compute capability 9.0 and newer: it must wait by
   * `griddepcontrol.wait` before it reads what that one writes (programmatic dependent launch).
   */
  readonly overlapsPrevious?: boolean;
}

/** What a kernel takes of a multiprocessor, as it was compiled. */
export interface KernelResources {
  /** 32-bit registers of each thread. */
  readonly registersPerThread: number;
  /** Bytes of each thread that had no room in registers: the compiler's spills, and arrays with indices it does not know. */
  readonly localBytesPerThread: number;
  /** Of a block, besides what a launch asks for. */
  readonly staticSharedBytes: number;
}

/** A loaded kernel, ready to launch. */
export interface CudaKernel {
  readonly name: string;
  /** What it takes; zeros on an emulated GPU. */
  resources(): KernelResources;
  /** Queues a launch on the device's current stream; `arguments_` follow the spec's `parameters`. */
  launch(
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    arguments_: readonly (number | Uint8Array)[],
  ): void;
}
