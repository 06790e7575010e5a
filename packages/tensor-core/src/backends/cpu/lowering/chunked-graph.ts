import type { TensorSpec } from '../../../base/memory-view.ts';
import type { OnnxLowering } from '../../../op/cpu-lowering.ts';
import type { OnnxValue } from '../../../onnx/graph.ts';
import type { DType } from '../../../base/dtype.ts';
import type { ComputeOp } from '../../../op/op.ts';
import { OnnxGraphBuilder } from '../../../onnx/onnx-graph.ts';
import { addToGraph } from './op-graph.ts';
import { checkReadBeforeWritten } from './read-before-written.ts';
import { cpuThreads } from '../../../onnx/threads.ts';

/**
 * How many elements a thread takes through the graph at a time. AdamW as 13 nodes over 10 million elements on two Zen 5 cores
 * (1 MiB of L2 each), ms: 22 in pieces of 8,192 elements a thread, 16.5 of 32,768, 11.4 of 65,536, 10.9 of 262,144, 24 in one
 * piece. On two Emerald Rapids cores (2 MiB each), 9.4 million elements: 32.4 of 32,768, 21.8 of 65,536, 19.5 of 131,072, and
 * 0.6 to 5 more in each case where every piece is a run of its own; with one thread, which waits for no other, 32 of 32,768
 * and of 65,536, 36 of 131,072, 51 of 262,144.
 */
const elementsPerThread = 131_072;
const elementsOfOneThread = 65_536;

/** The most elements of a piece. */
export function chunkSize(): number {
  const threads = cpuThreads();
  return threads === 1 ? elementsOfOneThread : elementsPerThread * threads;
}

/** What a graph's input gets in each run: a tensor's elements from `start` on, or a scalar of the op. */
export type ChunkedInput =
  | { readonly kind: 'elements'; readonly tensor: number; readonly start: number }
  | { readonly kind: 'scalar'; readonly index: number };

/** A graph that runs an element-wise op piece by piece. */
export interface ChunkedGraph {
  readonly graph: OnnxGraphBuilder;
  readonly inputs: readonly ChunkedInput[];
  readonly outputs: readonly { readonly tensor: number; readonly start: number }[];
  /** Null where the op has no scalars. */
  readonly scalarDType: DType | null;
}

/** Lowers an element-wise op to a graph over `size` elements: a scan of pieces, and nodes for the rest. */
export function lowerChunked<A>(
  op: ComputeOp<A>,
  lowering: OnnxLowering<A>,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  attributes: A,
  size: number,
): ChunkedGraph {
  const builder = new ChunkedGraphBuilder(op, lowering, inputs, outputs, attributes);
  const piece = chunkSize();
  const rest = size > piece ? size % piece : size;
  if (rest < size) builder.addPieces((size - rest) / piece, piece);
  if (rest > 0) builder.addRest(size - rest, rest);
  return builder;
}

class ChunkedGraphBuilder<A> implements ChunkedGraph {
  readonly graph = new OnnxGraphBuilder();
  readonly inputs: ChunkedInput[] = [];
  readonly outputs: { readonly tensor: number; readonly start: number }[] = [];
  readonly #op: ComputeOp<A>;
  readonly #lowering: OnnxLowering<A>;
  readonly #inputSpecs: readonly TensorSpec[];
  readonly #outputSpecs: readonly TensorSpec[];
  readonly #attributes: A;
  readonly #scalars: OnnxValue[] = [];

  constructor(
    op: ComputeOp<A>,
    lowering: OnnxLowering<A>,
    inputs: readonly TensorSpec[],
    outputs: readonly TensorSpec[],
    attributes: A,
  ) {
    this.#op = op;
    this.#lowering = lowering;
    this.#inputSpecs = inputs;
    this.#outputSpecs = outputs;
    this.#attributes = attributes;
  }

  get scalarDType(): DType | null {
    return this.#scalars[0]?.dtype ?? null;
  }

  addPieces(pieces: number, length: number): void {
    const body = new OnnxGraphBuilder('piece');
    const results = this.#addTo(body, length, (_, dtype) => body.input(dtype, [length]));
    for (const result of results) body.output(result);
    checkReadBeforeWritten(this.#op, body);
    const rows = this.#inputSpecs.map(({ dtype }, tensor) =>
      this.#elements(tensor, 0, dtype, [pieces, length]),
    );
    this.#output(this.graph.scan(body, rows), 0);
  }

  addRest(start: number, length: number): void {
    const alone = start === 0;
    const results = this.#addTo(this.graph, length, (tensor, dtype) =>
      this.#elements(tensor, start, dtype, [length]),
    );
    this.#output(results, start);
    if (alone) checkReadBeforeWritten(this.#op, this.graph);
  }

  #addTo(
    graph: OnnxGraphBuilder,
    length: number,
    memory: (tensor: number, dtype: DType) => OnnxValue,
  ): OnnxValue[] {
    const shape = [length];
    const operands = this.#inputSpecs.map(({ dtype }) => ({
      dtype,
      shape,
      strides: [1],
      offset: 0,
      storageSize: length,
    }));
    const results = this.#outputSpecs.map(({ dtype }) => ({ dtype, shape }));
    return addToGraph(graph, this.#op, this.#lowering, operands, results, this.#attributes, {
      memory: (index, { input }) => memory(index, input.dtype),
      scalar: (index, dtype) => this.#scalar(index, dtype),
    });
  }

  #elements(tensor: number, start: number, dtype: DType, shape: readonly number[]): OnnxValue {
    this.inputs.push({ kind: 'elements', tensor, start });
    return this.graph.input(dtype, shape);
  }

  #scalar(index: number, dtype: DType): OnnxValue {
    let scalar = this.#scalars[index];
    if (!scalar) {
      this.inputs.push({ kind: 'scalar', index });
      this.#scalars[index] = scalar = this.graph.input(dtype, []);
    }
    return scalar;
  }

  #output(values: readonly OnnxValue[], start: number): void {
    values.forEach((value, tensor) => {
      this.graph.output(value);
      this.outputs.push({ tensor, start });
    });
  }
}
