import type { DType, TypedArray } from '../base/dtype.ts';
import type { Shape } from '../base/shape.ts';
import type { TensorSpec } from '../base/memory-view.ts';

/** A tensor written into a graph; `data` holds its elements in row-major order. */
export interface OnnxTensor extends TensorSpec {
  readonly data: TypedArray;
}

/**
 * An attribute of a node. A number is written as `int` or `float`, as ONNX declares the attribute of that
 * name (`axis` and `epsilon`, say); a list is always `ints`.
 */
export type OnnxAttribute = number | string | readonly number[] | OnnxTensor;

/** Attributes of an ONNX node, by their names. */
export type OnnxAttributes = Readonly<Record<string, OnnxAttribute>>;

/** An edge of a graph. */
export interface OnnxValue extends TensorSpec {
  readonly name: string;
  /**
   * Set only on inputs of lowerings that declare `strided`: the op's operand is this value with its last two
   * dimensions swapped.
   */
  readonly transposed?: boolean;
}

/** Where a node's output differs from its first input, and whose operator it is. */
export interface OnnxNodeOptions extends Partial<TensorSpec> {
  readonly domain?: string;
}

/** The graph that a lowering adds its nodes to: one op's, or a whole training step's. */
export interface OnnxGraph {
  /** A node of one output, which has the shape and dtype of the first input unless `options` say otherwise. */
  node(
    opType: string,
    inputs: readonly (OnnxValue | null)[],
    attributes?: OnnxAttributes,
    options?: OnnxNodeOptions,
  ): OnnxValue;
  /** A node of several outputs. A null among the inputs leaves an optional one out. */
  nodes(
    opType: string,
    inputs: readonly (OnnxValue | null)[],
    attributes: OnnxAttributes,
    outputs: readonly TensorSpec[],
    options?: { readonly domain?: string },
  ): OnnxValue[];
  /** `value` as `dtype`: itself, if it already is. */
  cast(value: OnnxValue, dtype: DType): OnnxValue;
  /** A constant; plain numbers are converted to `dtype`. */
  constant(dtype: DType, shape: Shape, data: TypedArray | readonly number[]): OnnxValue;
  /** A constant of rank 0. */
  scalar(dtype: DType, value: number): OnnxValue;
  /** A constant list of whole numbers, as the inputs of Reshape, Slice and Expand have it. */
  integers(values: readonly number[]): OnnxValue;
  /** `value` with its elements, in row-major order, in another shape: at run time this moves nothing. */
  reshape(value: OnnxValue, shape: Shape): OnnxValue;
}

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
  /**
   * For element-wise ops: a mutated input is overwritten where it lies, if it is contiguous, in place of a buffer that
   * takes its place. The order of nodes is that of `chunked`.
   */
  readonly overwrites?: boolean;
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
  /** The same as nodes, for graphs that leave this process: see `exportOnnx`. */
  readonly nodes?: OnnxLowering<A>['build'];
  /** Whether it throws for some values of its inputs. In a compiled program nothing of what comes behind runs before it. */
  readonly checksValues?: boolean;
  run(inputs: readonly HostArray[], outputs: readonly HostArray[], attributes: A): void;
}

/** A contiguous tensor's elements on the host. */
export interface HostArray extends TensorSpec {
  readonly data: TypedArray;
}

/** How an op runs on the CPU: as ONNX nodes, or in JavaScript. */
export type CpuLowering<A> = OnnxLowering<A> | HostLowering<A>;
