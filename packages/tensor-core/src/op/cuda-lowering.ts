import type { CudaKernel, CudaProperties, KernelSpec } from '../cuda/kernel.ts';
import type { DType } from '../base/dtype.ts';
import type { Layout } from '../base/shape.ts';
import type { MemoryView, StridedMemory, TensorSpec } from '../base/memory-view.ts';

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

/** A value on the way to an output, in the compute type, but rounded as elements of `dtype` are in memory. */
export interface PointwiseValue {
  /** A C identifier beside `a`, `b`... and `s0`, `s1`... */
  readonly name: string;
  readonly dtype: DType;
  /** CUDA C++, as the expressions are. */
  readonly text: string;
}

/**
 * One value from each input gives one value of each output, element by element with broadcasting.
 * Expressions are CUDA C++ over `a`, `b`, `c`... (the inputs, in the compute type: float for float16 and
 * bfloat16, else the promoted dtype's own) and `s0`, `s1`... (the op's scalars); one for each output.
 * The same text serves the eager kernel and a fused one.
 */
export interface PointwiseKernel<A> {
  readonly kind: 'pointwise';
  /** Values that expressions, and values behind them, use by their names. Default: none. */
  values?(attributes: A): readonly PointwiseValue[];
  expressions(attributes: A): readonly string[];
}

/**
 * Folds the dimensions `attributes.dims` of one input. `combine` is CUDA C++ over `x` and `y`, `finish` over
 * `x` and `n` (the number of elements folded); float16 and bfloat16 are folded in float. What an element gives to the
 * fold is itself, or `term`, over `x` and `center`: a second input's element in the place of the result. That input is
 * contiguous, of the output's size, and of the dtype in which the fold is done.
 */
export interface ReductionKernel {
  readonly kind: 'reduction';
  readonly identity: 'zero' | 'lowest' | 'highest';
  readonly term?: string;
  readonly combine: string;
  readonly finish: string;
}

/** Element-wise work that a compiled program gives a kernel to do as it loads an input and stores an output. */
export interface KernelFusion {
  /** `spec`, whose source includes fusion.cuh, with that work in it. */
  kernel(spec: KernelSpec): KernelSpec;
  /** The `Edges` of fusion.cuh, the kernel's last argument. */
  readonly argument: Uint8Array;
}

/** What of an op may be loaded and stored by way of kernels/fusion.cuh: the same shape, row by row. */
export interface FusionPlaces {
  /** The input's index. */
  readonly input: number;
  /** The output's index. */
  readonly output: number;
  /** Rows of more elements are not given. */
  readonly longestRow: number;
}

/**
 * Outputs that a small kernel behind the op's own makes of partial results: a compiled program runs that kernel once for
 * many calls, which takes it less time than beginning it for each.
 */
export interface DeferredOutputs {
  /** They are those from this place on. */
  readonly first: number;
  /** Of each such output, the partial results of a call with these operands, on a GPU of these properties. */
  partials(
    properties: CudaProperties,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
  ): readonly TensorSpec[];
  /** The op with the partial results in the place of those outputs. */
  launch(
    context: CudaContext,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    edges?: KernelFusion,
  ): void;
  /** Any number of outputs of one shape and dtype from their partial results, which are of one shape and dtype, too. */
  finish(context: CudaContext, partials: readonly MemoryView[], outputs: readonly MemoryView[]): void;
}

/**
 * An op that updates several tensors in place, each by itself, by numbers that are the same for all: a compiled program
 * makes several calls of it, so that a tensor is updated, and what it is updated by is freed, before that of the last is
 * there.
 */
export interface UpdateByTensor<A> {
  /** How many of the roles, the first ones, are written: input and output `role * count + tensor` is that of a tensor. */
  readonly written: number;
  /** How many roles there are; inputs behind theirs are shared by all tensors. */
  readonly roles: number;
  /** How many numbers `coefficients` writes. */
  readonly coefficientCount: number;
  /** Writes the numbers of a run, float32, for all calls of that run. */
  coefficients(context: CudaContext, memory: MemoryView, attributes: A): void;
  /**
   * The op over some of its tensors, by numbers at these addresses: `coefficients` as written, and the float32 `factor`, 0
   * for none, by which what the tensors are updated by, the roles that are not written, is multiplied first, each product
   * rounded.
   */
  launch(
    context: CudaContext,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    numbers: { readonly coefficients: number; readonly factor: number },
    copies?: readonly (MemoryView | null)[],
  ): void;
}

/**
 * An op that does nothing but to multiply its first inputs, one for each of its outputs, in place by one factor: a compiled
 * program lets who updates by them alone multiply.
 */
export interface InPlaceScaling<A> {
  /** Writes the factor, one float32; `shared` are the inputs behind those that are multiplied. */
  factor(context: CudaContext, shared: readonly MemoryView[], memory: MemoryView, attributes: A): void;
}

/** An op with a kernel (or library call) of its own. */
export interface CustomKernel<A> {
  readonly kind: 'custom';
  /** True when `launch` reads strides itself; otherwise inputs are made contiguous before it runs. */
  readonly strided?: boolean;
  /**
   * Of an op that writes float32 inputs in place: how many of its outputs, the first ones, `launch` also writes in lower
   * precision, where it gets `copies`: contiguous memory for each of them, null for none, all float16 or all bfloat16.
   * Compiled programs have an optimizer write so what autocast would cast in the next step. Default 0.
   */
  readonly copied?: number;
  /**
   * Whether `launch` can write an output of that layout. Default: contiguous ones alone, which are all that eager calls
   * give; a compiled program saves a copy where more is possible.
   */
  writesStrided?(output: Layout): boolean;
  /**
   * The inputs, by their places, in the place of each of which `launch` also takes two that lie alike, with two outputs in the
   * place of the one: so that a compiled program makes one call of two. Default: none.
   */
  readonly takesTwo?: readonly number[];
  /** Where the op's kernel takes `edges`: an input or output that they make or take then has the address 0. */
  readonly edges?: FusionPlaces;
  /** What of the op may be done later, for many calls at once. */
  readonly deferred?: DeferredOutputs;
  /** How an update of several tensors is made in several calls. */
  readonly byTensor?: UpdateByTensor<A>;
  /** By what an op multiplies tensors in place. */
  readonly scales?: InPlaceScaling<A>;
  launch(
    context: CudaContext,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
    edges?: KernelFusion,
    copies?: readonly (MemoryView | null)[],
  ): void;
}

/** How an op runs on an NVIDIA GPU: by a generated kernel, a library, or a launch of its own. */
export type CudaLowering<A> = PointwiseKernel<A> | ReductionKernel | CustomKernel<A>;
