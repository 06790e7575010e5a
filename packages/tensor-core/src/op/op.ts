import type { CudaContext } from '../devices/cuda/context.ts';
import type { OnnxGraph, OnnxValue } from '../devices/cpu/onnx/onnx-graph.ts';
import type { DType } from '../tensor/dtype.ts';
import type { Layout, Shape } from '../tensor/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';

/** What a rule may know of a tensor without reading it. A `Tensor` is one. */
export interface TensorSpec {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** Work of one call: floating-point operations, and the fewest bytes it must move through device memory. */
export interface Cost {
  readonly flops: number;
  readonly bytesMoved: number;
}

/**
 * One value from each input gives one value of each output, element by element with broadcasting.
 * Expressions are CUDA C++ over `a`, `b`, `c`... (the inputs, in the compute type: float for float16 and
 * bfloat16, else the promoted dtype's own) and `s0`, `s1`... (the op's scalars); one for each output.
 * The same text serves the eager kernel and a fused one.
 */
export interface PointwiseKernel<A> {
  readonly kind: 'pointwise';
  expressions(attributes: A): readonly string[];
}

/**
 * Folds the dimensions `attributes.dims` of one input. `combine` is CUDA C++ over `x` and `y`, `finish` over
 * `x` and `n` (the number of elements folded); float16 and bfloat16 are folded in float.
 */
export interface ReductionKernel {
  readonly kind: 'reduction';
  readonly identity: 'zero' | 'lowest';
  readonly combine: string;
  readonly finish: string;
}

/** An op with a kernel (or library call) of its own. */
export interface CustomKernel<A> {
  readonly kind: 'custom';
  /** True when `launch` reads strides itself; otherwise inputs are made contiguous before it runs. */
  readonly strided?: boolean;
  launch(context: CudaContext, inputs: readonly Tensor[], outputs: readonly Tensor[], attributes: A): void;
}

export type CudaLowering<A> = PointwiseKernel<A> | ReductionKernel | CustomKernel<A>;

/**
 * The op as ONNX nodes. float16 and bfloat16 inputs arrive as float32, and outputs are rounded to their dtype
 * by the device, so a lowering never meets them. `scalars` are rank-0 values, in the compute dtype for
 * pointwise ops, else float32 (float64 if that is what the op computes in).
 */
export interface OnnxLowering<A> {
  readonly kind: 'onnx';
  /** Inputs come as they lie in memory, with `transposed` set on those whose last two dimensions lie swapped. */
  readonly strided?: boolean;
  /**
   * For element-wise ops of many nodes over large tensors, such as an optimizer's: the graph is run over pieces
   * that stay in the processor's cache between its nodes, and writes mutated inputs in place. All tensors are
   * then contiguous and of one size, and `build` sees rank-1 pieces of them. A node that reads a mutated input
   * must come before (lead to) the node whose output replaces that input.
   */
  readonly chunked?: boolean;
  build(
    graph: OnnxGraph,
    inputs: readonly OnnxValue[],
    attributes: A,
    info: { readonly scalars: readonly OnnxValue[]; readonly outputs: readonly TensorSpec[] },
  ): readonly OnnxValue[];
}

/** The op in JavaScript or WebAssembly, over contiguous typed arrays, for what ONNX has no node. */
export interface HostLowering<A> {
  readonly kind: 'host';
  run(inputs: readonly HostArray[], outputs: readonly HostArray[], attributes: A): void;
}

/** A contiguous tensor's elements on the host. */
export interface HostArray extends TensorSpec {
  readonly data: import('../tensor/dtype.ts').TypedArray;
}

export type CpuLowering<A> = OnnxLowering<A> | HostLowering<A>;

/** What a gradient rule gets. Saved tensors are those that `saves` named; asking for others throws. */
export interface GradientContext<A> {
  readonly attributes: A;
  /** The gradient of each output; null where nothing downstream used that output. */
  readonly gradients: readonly (Tensor | null)[];
  /** Whether the gradient of input `i` is wanted. */
  readonly needs: readonly boolean[];
  /** As they were given: autocast may have cast what `input` returns. Gradients are cast to these dtypes. */
  readonly inputSpecs: readonly TensorSpec[];
  readonly outputSpecs: readonly TensorSpec[];
  input(index: number): Tensor;
  output(index: number): Tensor;
}

/** The inputs and outputs, by index, that the backward pass will read. */
export interface Saves {
  readonly inputs?: readonly number[];
  readonly outputs?: readonly number[];
}

/**
 * How autocast treats an op: `lower` and `float32` cast its floating-point inputs to the low dtype or to float32;
 * a `promote` op takes them as they come and works in the widest, and `none` is left alone.
 */
export type AutocastClass = 'lower' | 'float32' | 'promote' | 'none';

interface OpBase<A> {
  readonly name: string;
  readonly autocast: AutocastClass;
  /** Given which inputs need a gradient, what to keep for the backward pass. Default: nothing. */
  saves?(needs: readonly boolean[], attributes: A): Saves;
  /** Gradients of the inputs, in their order; null where not wanted. An op without one is not differentiable. */
  gradient?(context: GradientContext<A>): readonly (Tensor | null)[];
}

/** An op that computes. */
export interface ComputeOp<A> extends OpBase<A> {
  readonly kind: 'compute';
  /** Shapes and dtypes of the outputs. Throws ShapeError or DTypeError. */
  infer(inputs: readonly TensorSpec[], attributes: A): readonly TensorSpec[];
  /** Inputs that are written in place; output `i` is then input `mutates[i]`. */
  readonly mutates?: readonly number[];
  /** Numbers that change from call to call without a new kernel or graph. */
  scalars?(attributes: A): readonly number[];
  /** The part of the attributes that selects a kernel or graph. Default: all of them, as JSON. */
  variant?(attributes: A): string;
  /** Default: no FLOPs, every input read and every output written once. */
  cost?(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], attributes: A): Cost;
  readonly cuda: CudaLowering<A>;
  readonly cpu: CpuLowering<A>;
}

/** An op that only reads its one input's storage differently. It never runs on a device. */
export interface ViewOp<A> extends OpBase<A> {
  readonly kind: 'view';
  layout(input: Layout, attributes: A): Layout;
}

export type Op<A> = ComputeOp<A>;

/** Defines an op that computes; this is the one place where everything about it is said. */
export function defineOp<A = undefined>(definition: Omit<ComputeOp<A>, 'kind'>): ComputeOp<A> {
  return { kind: 'compute', ...definition };
}

/** Defines an op that only changes the layout. */
export function defineView<A>(definition: Omit<ViewOp<A>, 'kind'>): ViewOp<A> {
  return { kind: 'view', ...definition };
}
