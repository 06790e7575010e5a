import type { CudaKernel, CudaProperties, KernelSpec } from '../cuda/kernel.ts';
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
  /**
   * What is added, before anything is rounded: it lies as D does and is of its dtype, and may be D itself. cublasLt alone
   * adds it. Default: nothing.
   */
  readonly c?: number;
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
}

/** What an op's CUDA lowering works with. */
export interface CudaContext {
  readonly properties: CudaProperties;
  /** Compiles (or finds) a kernel. Specs are looked up by identity first: keep them in a constant or a table. */
  kernel(spec: KernelSpec): CudaKernel;
  /** Memory for this one lowering; freed, in stream order, when `launch` returns. */
  workspace(byteLength: number): number;
  /** Sets bytes to `value`, in stream order. */
  fillBytes(address: number, value: number, byteLength: number): void;
  matmul(request: MatmulRequest): void;
  /** Copies elements from one layout to another of the same shape and dtype. */
  copy(from: StridedMemory, to: StridedMemory): void;
}
