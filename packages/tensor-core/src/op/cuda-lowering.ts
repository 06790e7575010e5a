import type { DType } from '../base/dtype.ts';
import type { MemoryView } from '../base/memory-view.ts';
import type { CudaContext } from './cuda-context.ts';
import type { FusedWork, KernelRewrites } from './kernel-rewrites.ts';

export type * from './cuda-context.ts';

/** An intermediate value, in the compute type; rounded as elements of `dtype` are in memory, or not for null. */
export interface PointwiseValue {
  /** A C identifier other than `a`, `b`... and `s0`, `s1`... */
  readonly name: string;
  readonly dtype: DType | null;
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
  /** Values that expressions, and later values, use by name. Default: none. */
  values?(attributes: A): readonly PointwiseValue[];
  expressions(attributes: A): readonly string[];
}

/**
 * Folds the dimensions `attributes.dims` of one input. `combine` is CUDA C++ over `x` and `y`, `finish` over `x` and `n` (the
 * number of elements folded); float16 and bfloat16 are folded in float. An element is folded as it is, or as `term`, over `x`
 * and `center`: the element of a second input at the place of the result. That input is contiguous, and has the output's size
 * and the dtype in which the fold is done.
 */
export interface ReductionKernel {
  readonly kind: 'reduction';
  readonly identity: 'zero' | 'lowest' | 'highest';
  readonly term?: string;
  readonly combine: string;
  readonly finish: string;
}

/** An op with a kernel (or library call) of its own. */
export interface CustomKernel<A> {
  readonly kind: 'custom';
  /** True when `launch` reads strides itself; otherwise inputs are made contiguous before it runs. */
  readonly strided?: boolean;
  /** Read only by the compiler: what it may make of calls. Default: it leaves them as they are. */
  readonly rewrites?: KernelRewrites<A>;
  /** Queues the op. `fused` is what the compiler has fused into this call, as `rewrites` allow; eager calls have none. */
  launch(
    context: CudaContext,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
    fused?: FusedWork,
  ): void;
}

/** How an op runs on an NVIDIA GPU: by a generated kernel, a library, or a launch of its own. */
export type CudaLowering<A> = PointwiseKernel<A> | ReductionKernel | CustomKernel<A>;
