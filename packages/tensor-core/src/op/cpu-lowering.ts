import type { TypedArray } from '../base/dtype.ts';
import type { OnnxGraph, OnnxValue } from '../onnx/graph.ts';
import type { MemoryView, TensorSpec } from '../base/memory-view.ts';

/**
 * The op as ONNX nodes. float16 and bfloat16 inputs arrive as float32, and outputs are rounded to their dtype by the device,
 * so a lowering never sees them. `scalars` are rank-0 values, in the compute dtype for pointwise ops, otherwise float32
 * (float64 if the op computes in that).
 */
export interface OnnxLowering<A> {
  readonly kind: 'onnx';
  /** Inputs come as they are in memory, with `transposed` set on those whose last two dimensions are swapped there. */
  readonly strided?: boolean;
  /**
   * For element-wise ops of many nodes over large tensors, such as an optimizer's: the graph is run over pieces
   * that stay in the processor's cache between its nodes, and writes mutated inputs in place. All tensors are
   * then contiguous and of one size, and `build` sees rank-1 pieces of them. A node that reads a mutated input
   * must come before (lead to) the node whose output replaces that input.
   */
  readonly chunked?: boolean;
  /**
   * For element-wise ops: a contiguous mutated input is overwritten in place, instead of being replaced by a new buffer. The
   * order of nodes must be as for `chunked`.
   */
  readonly overwrites?: boolean;
  build(
    graph: OnnxGraph,
    inputs: readonly OnnxValue[],
    attributes: A,
    info: { readonly scalars: readonly OnnxValue[]; readonly outputs: readonly TensorSpec[] },
  ): readonly OnnxValue[];
}

/** The op in JavaScript or WebAssembly, on contiguous typed arrays, where ONNX has no node. */
export interface HostLowering<A> {
  readonly kind: 'host';
  /** The same as ONNX nodes, for `exportOnnx`. */
  readonly nodes?: OnnxLowering<A>['build'];
  /** Whether it throws for some values of its inputs. The compiler then moves no later call before it. */
  readonly checksValues?: boolean;
  run(inputs: readonly HostArray[], outputs: readonly HostArray[], attributes: A): void;
}

/**
 * The op in a library that takes addresses, of contiguous tensors; the function that users call makes them so. It may go on after
 * `run` has returned: see `StoredMemory.noteUnderWay`.
 */
export interface MemoryLowering<A> {
  readonly kind: 'memory';
  run(inputs: readonly MemoryView[], outputs: readonly MemoryView[], attributes: A): void;
}

/** A contiguous tensor's elements on the host. */
export interface HostArray extends TensorSpec {
  readonly data: TypedArray;
}

/** How an op runs on the CPU: as ONNX nodes, in JavaScript, or in a library. */
export type CpuLowering<A> = OnnxLowering<A> | HostLowering<A> | MemoryLowering<A>;
