import type { DType, TypedArray } from '../base/dtype.ts';
import type { TensorSpec } from '../base/memory-view.ts';
import type { Shape } from '../base/shape.ts';

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
  /** Of inputs and outputs, in place of lengths in `shape`: names of those that differ from run to run, null for other such. */
  readonly dimensions?: readonly (number | string | null)[];
}

/** How a node's output differs from its first input, and the operator's domain. */
export interface OnnxNodeOptions extends Partial<TensorSpec> {
  readonly domain?: string;
}

/** The graph that a lowering adds its nodes to: one op's, or a whole training step's. */
export interface OnnxGraph {
  /** Whether it may hold ONNX's own operators alone, as one that is exported, and none of ONNX Runtime's. */
  readonly standardOnly?: boolean;
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

/** A node of a graph. */
export interface OnnxNode {
  readonly opType: string;
  /** Empty for ONNX's own operators; `com.microsoft` for ONNX Runtime's. */
  readonly domain: string;
  /** Names of values; an empty one stands for an optional input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute | OnnxGraphContents>>;
}

/** What a graph holds, to be written. */
export interface OnnxGraphContents {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** In a topological order. */
  readonly operations: readonly OnnxNode[];
  readonly constants: readonly (OnnxTensor & { readonly name: string })[];
}
