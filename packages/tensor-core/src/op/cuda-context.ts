import type { CudaKernel, CudaProperties, KernelSpec } from '@roofline/cuda';
import type { DType } from '../base/dtype.ts';
import type { StridedMemory } from '../base/memory-view.ts';

/** D = scale · op(A) · op(B), row-major, one product per batch index; with C, D = scale · op(A) · op(B) + C. */
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
  /** C, which is added before rounding: of D's layout and dtype, possibly D itself. Only cublasLt adds it. Default: none. */
  readonly c?: number;
  /** Whether the operand is stored transposed: A as k×m, B as n×k, with dense rows. */
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  /** Elements from one stored row to the next. */
  readonly pitchA: number;
  readonly pitchB: number;
  readonly pitchD: number;
  /** Elements from one product's operand to the next one's; 0 repeats it. */
  readonly batchStrideA: number;
  readonly batchStrideB: number;
  readonly batchStrideD: number;
  readonly scale: number;
}

/** What an op's CUDA lowering gets. */
export interface CudaContext {
  readonly properties: CudaProperties;
  /**
   * How many multiprocessors a kernel that stays on them should take: all, but fewer for a call that a compiled function runs
   * beside others, which need some as well.
   */
  readonly multiprocessors: number;
  /** Whether what is queued now becomes part of a CUDA graph, which runs later, and each time that it is launched. */
  readonly isCaptured: boolean;
  /**
   * Compiles a kernel, or finds it in the cache. Specs are looked up by identity first: keep them in a constant or a table.
   */
  kernel(spec: KernelSpec): CudaKernel;
  /** The address of memory for this call, freed in stream order when `launch` returns. */
  workspace(byteLength: number): number;
  /** Sets bytes to `value`, in stream order. */
  fillBytes(address: number, value: number, byteLength: number): void;
  matmul(request: MatmulRequest): void;
  /** Copies elements from one layout to another of the same shape and dtype. */
  copy(from: StridedMemory, to: StridedMemory): void;
}
