import type { Tensor } from '../../tensor/tensor.ts';
import type { DType } from '../../tensor/dtype.ts';
import type { Shape } from '../../tensor/shape.ts';

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
  /** Dynamic shared memory above 48 KiB must be announced. */
  readonly dynamicSharedBytes?: number;
  /**
   * May begin while the kernel queued before it still runs, on compute capability 9.0 and newer: it must wait by
   * `griddepcontrol.wait` before it reads what that one writes (programmatic dependent launch).
   */
  readonly overlapsPrevious?: boolean;
}

/** A loaded kernel, ready to launch. */
export interface CudaKernel {
  readonly name: string;
  /** Queues a launch on the device's current stream; `arguments_` follow the spec's `parameters`. */
  launch(
    grid: readonly [number, number, number],
    blockSize: number,
    sharedBytes: number,
    arguments_: readonly (number | Uint8Array)[],
  ): void;
}

/** D = scale · op(A) · op(B) (+ D if accumulate), row-major, one product per batch index. */
export interface MatmulRequest {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: number;
  readonly inputDType: DType;
  readonly outputDType: DType;
  /** Device addresses of the first elements. */
  readonly a: number;
  readonly b: number;
  readonly d: number;
  /** True when the operand lies transposed: A as k×m, B as n×k (its rows are contiguous that way). */
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  /** Elements from one stored row to the next. */
  readonly pitchA: number;
  readonly pitchB: number;
  readonly pitchD: number;
  /** Elements from one product's operand to the next one's; 0 repeats. */
  readonly batchStrideA: number;
  readonly batchStrideB: number;
  readonly batchStrideD: number;
  readonly scale: number;
  readonly accumulate: boolean;
}

/** What an op's CUDA lowering works with. */
export interface CudaContext {
  readonly properties: CudaProperties;
  /** Compiles (or finds) a kernel. Specs are looked up by identity first: keep them in a constant or a table. */
  kernel(spec: KernelSpec): CudaKernel;
  /** The address of a tensor's first element. */
  pointer(tensor: Tensor): number;
  /** Memory for this one lowering; freed, in stream order, when `launch` returns. */
  workspace(byteLength: number): number;
  /** Sets bytes to `value`, in stream order. */
  fillBytes(pointer: number, value: number, byteLength: number): void;
  matmul(request: MatmulRequest): void;
  /** Copies elements from one layout to another of the same shape and dtype. */
  copy(from: StridedMemory, to: StridedMemory): void;
}

/** Elements in device memory; strides count elements. */
export interface StridedMemory {
  readonly pointer: number;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: Shape;
}
