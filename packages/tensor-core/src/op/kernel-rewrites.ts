import type { CudaProperties, KernelSpec } from '@roofline/cuda';
import type { MemoryView, TensorSpec } from '../base/memory-view.ts';
import type { Layout } from '../base/shape.ts';
import type { CudaContext } from './cuda-context.ts';

/** Element-wise work that a kernel does as it loads an input, its prologue, and as it stores an output, its epilogue. */
export interface KernelFusion {
  /** `spec`, whose source includes fusion.cuh, with that work in it. */
  kernel(spec: KernelSpec): KernelSpec;
  /** The `Fusion` of fusion.cuh, the kernel's last argument. */
  readonly argument: Uint8Array;
}

/** Which input has a prologue and which output an epilogue, by kernels/fusion.cuh: both have the same shape, row by row. */
export interface FusionPlaces {
  /** The input's index. */
  readonly input: number;
  /** The output's index. */
  readonly output: number;
  /** Longer rows, in elements, are not fused. */
  readonly longestRow: number;
}

/**
 * Outputs that a small second kernel of the op makes from partial results: the compiler runs that kernel once for many calls,
 * which takes less time than starting it for each.
 */
export interface DeferredOutputs {
  /** They are the outputs from this index on. */
  readonly first: number;
  /** For each such output, the partial results of a call with these operands, on a GPU of these properties. */
  partials(
    properties: CudaProperties,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
  ): readonly TensorSpec[];
  /** The op with partial results in place of those outputs. */
  launch(
    context: CudaContext,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    fusion?: KernelFusion,
  ): void;
  /** Makes any number of outputs of one shape and dtype from their partial results, also of one shape and dtype. */
  finish(context: CudaContext, partials: readonly MemoryView[], outputs: readonly MemoryView[]): void;
}

/** Memory for a low-precision copy of each of the first outputs, null for none; all float16 or all bfloat16. */
export type LowPrecisionCopies = readonly (MemoryView | null)[];

/** A tensor's place in its storage, whose memory begins at a multiple of 16 bytes. */
export interface PlacedTensor extends TensorSpec, Layout {}

/** A float32 gradient [m, n] as the product of `dy`, [m, k], and `x`, [k, n], both of one low-precision dtype. */
export interface GradientProduct {
  readonly dy: PlacedTensor;
  readonly x: PlacedTensor;
}

/**
 * How an update's own kernel multiplies, where a gradient is a product that only the update reads: it is then never in memory.
 * Such an update has one role that is not written, the last one: the gradient.
 */
export interface UpdateByProducts {
  /** Tensors that one call takes. */
  readonly mostTensors: number;
  /** FLOPs of products that make a call worth its start, on a GPU of these properties: below that it waits for further ones. */
  enoughFlops(properties: CudaProperties): number;
  /** Whether a call takes a tensor, given as its written roles and its low-precision copy, with this gradient. */
  takes(
    properties: CudaProperties,
    written: readonly PlacedTensor[],
    copy: PlacedTensor | null,
    product: GradientProduct,
  ): boolean;
  /** As `UpdateByTensor.launch`, with two roles in place of the gradients': dy and x, all of one dtype. */
  launch: UpdateByTensor<never>['launch'];
}

/**
 * An op that updates several tensors in place, each independently, by numbers that are the same for all. The compiler splits
 * it into several calls, so that a tensor is updated, and its gradient freed, before the gradient of the last one exists.
 */
export interface UpdateByTensor<A> {
  /** How many of the roles, the first ones, are written. Input and output `role * count + tensor` belong to `tensor`. */
  readonly written: number;
  /** How many roles there are; inputs after theirs are shared by all tensors. */
  readonly roles: number;
  /** How many numbers `coefficients` writes. */
  readonly coefficientCount: number;
  /** Writes the numbers of a run, float32, for all its calls. */
  coefficients(context: CudaContext, memory: MemoryView, attributes: A): void;
  /**
   * The op on some of its tensors, with numbers at these addresses: `coefficients` as written, and a float32 `factor`, 0 for
   * none, by which the roles that are not written, such as gradients, are multiplied first; each product is rounded.
   */
  launch(
    context: CudaContext,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    numbers: { readonly coefficients: number; readonly factor: number },
    copies?: LowPrecisionCopies,
  ): void;
  /** Default: gradients are always read from memory. */
  readonly byProducts?: UpdateByProducts;
}

/**
 * An op that only multiplies its first inputs, one for each output, in place by one factor: where only updates read the
 * products, the compiler lets the updates multiply.
 */
export interface InPlaceScaling<A> {
  /** Writes the factor, one float32; `shared` are the inputs after those that are multiplied. */
  factor(context: CudaContext, shared: readonly MemoryView[], memory: MemoryView, attributes: A): void;
}

/** What the compiler may make of an op's calls. */
export interface KernelRewrites<A> {
  /**
   * For an op that writes float32 inputs in place: how many of its outputs, the first ones, `launch` can also write in lower
   * precision, to `copies`. So an optimizer writes what autocast would cast in the next step. Default 0.
   */
  readonly copied?: number;
  /**
   * Whether `launch` can write an output of that layout, which saves a copy. Default: only contiguous ones, which is all that
   * eager calls ask for.
   */
  writesStrided?(output: Layout): boolean;
  /**
   * Indices of inputs for each of which `launch` also takes two of the same layout, with two outputs in place of one: two
   * calls become one. Default: none.
   */
  readonly takesTwo?: readonly number[];
  /** Where the kernel takes a prologue and an epilogue. An input or output that is not in memory has the address 0. */
  readonly fusion?: FusionPlaces;
  /** What may be finished later, for many calls at once. */
  readonly deferred?: DeferredOutputs;
  /** How an update of several tensors is split into several calls. */
  readonly byTensor?: UpdateByTensor<A>;
  /** The factor of an op that scales tensors in place. */
  readonly scales?: InPlaceScaling<A>;
}

/** What the compiler has fused into one call. */
export interface FusedWork {
  /** Default: no prologue and no epilogue. */
  readonly fusion?: KernelFusion;
  /** Default: none. */
  readonly copies?: LowPrecisionCopies;
}
