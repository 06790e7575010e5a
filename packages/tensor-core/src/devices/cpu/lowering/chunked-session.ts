import type { MemoryView } from '../../../op/memory-view.ts';
import type { TensorSpec } from '../../../op/memory-view.ts';
import type { OnnxLowering } from '../../../op/cpu-lowering.ts';
import { byteSize } from '../../../tensor/dtype.ts';
import { ShapeError } from '../../../errors.ts';
import type { ComputeOp } from '../../../op/op.ts';
import { formatShape } from '../../../tensor/shape.ts';
import { bufferOf } from './host-lowering.ts';
import type { OnnxGraphBuilder } from '../onnx/onnx-graph.ts';
import { type OpGraph, lowerToGraph } from './op-graph.ts';
import { ScalarMemory } from './scalar-memory.ts';
import { Session } from '../onnx/session.ts';
import { cpuThreads } from '../threads.ts';

/**
 * Elements that a thread takes through the graph at a time. AdamW as 13 nodes over 10 million elements on two
 * Zen 5 cores (1 MiB of L2 each), ms: 22 in pieces of 8,192 elements a thread, 16.5 of 32,768, 11.4 of 65,536,
 * 10.9 of 262,144, 24 in one piece; with one thread 17 to 21 in pieces, 29 in one. torch 1.13 takes 30 and 47.
 */
const elementsPerThread = 65_536;

/** The most elements of a piece. */
export function chunkSize(): number {
  return elementsPerThread * cpuThreads();
}

/** Throws a ShapeError unless the tensors can be cut into the same pieces. */
export function checkChunkable(op: string, tensors: readonly MemoryView[]): void {
  const { size } = tensors.at(-1)!;
  for (const tensor of tensors) {
    if (tensor.size === size && tensor.isContiguous) continue;
    throw new ShapeError(
      `${op}: runs piece by piece on the CPU, so its tensors must be contiguous and all of ${size} elements; ` +
        `one is ${tensor.isContiguous ? '' : 'a strided view '}${formatShape(tensor.shape)}.`,
    );
  }
}

/** Lowers an element-wise op to a graph over pieces of `length` elements. */
export function lowerPiece<A>(
  op: ComputeOp<A>,
  lowering: OnnxLowering<A>,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  attributes: A,
  length: number,
): OpGraph {
  const shape = [length];
  const operands = inputs.map(({ dtype }) => ({
    dtype,
    shape,
    strides: [1],
    offset: 0,
    storageSize: length,
  }));
  const results = outputs.map(({ dtype }) => ({ dtype, shape }));
  const lowered = lowerToGraph(op, lowering, operands, results, attributes);
  checkReadBeforeWritten(op, lowered);
  return lowered;
}

/** A session for pieces of an element-wise op, which writes mutated inputs in place. */
export class ChunkedSession {
  readonly #session: Session;
  readonly #scalars: ScalarMemory;
  /** Of the inputs, the scalars and the outputs. */
  readonly #addresses: number[];

  constructor({ graph, bindings, scalarDType }: OpGraph) {
    this.#session = new Session(graph);
    this.#scalars = new ScalarMemory(scalarDType, graph.inputs.length - bindings.length);
    this.#addresses = graph.inputs.map((_, i) => this.#scalars.addressOf(i - bindings.length));
    this.#addresses.push(...graph.outputs.map(() => 0));
  }

  /** Runs the graph over the elements from `start` on. */
  run(
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    start: number,
    scalars: readonly number[] | undefined,
  ): void {
    if (scalars) this.#scalars.write(scalars);
    const addresses = this.#addresses;
    const firstOutput = addresses.length - outputs.length;
    for (let i = 0; i < inputs.length; i++) addresses[i] = elementAddress(inputs[i]!, start);
    for (let i = 0; i < outputs.length; i++) addresses[firstOutput + i] = elementAddress(outputs[i]!, start);
    this.#session.run(addresses);
  }

  dispose(): void {
    this.#session.dispose();
  }
}

function elementAddress(tensor: MemoryView, element: number): number {
  return bufferOf(tensor).address + (tensor.offset + element) * byteSize(tensor.dtype);
}

/**
 * Throws a ShapeError where a mutated input, which is overwritten as the graph runs, could be read afterwards: ONNX
 * Runtime chooses the order of nodes, and only those that lead to a node are sure to run before it.
 */
export function checkReadBeforeWritten<A>({ name, mutates }: ComputeOp<A>, { graph }: OpGraph): void {
  mutates?.forEach((input, output) => checkReads(name, graph, input, output));
}

function checkReads(op: string, graph: OnnxGraphBuilder, input: number, output: number): void {
  const earlier = nodesThatLeadTo(graph, [graph.outputs[output]!.name]);
  const used = nodesThatLeadTo(
    graph,
    graph.outputs.map(({ name }) => name),
  );
  const { name } = graph.inputs[input]!;
  const late = [...used].find((node) => node.inputs.includes(name) && !earlier.has(node));
  if (late) {
    throw new ShapeError(
      `${op}: output ${output} replaces input ${input} in place, but a ${late.opType} that does not lead to that ` +
        'output reads the input too. Let it read the output, or do without `chunked` and `overwrites`.',
    );
  }
}

type Node = OnnxGraphBuilder['operations'][number];

function nodesThatLeadTo(graph: OnnxGraphBuilder, outputs: readonly string[]): Set<Node> {
  const makers = new Map(
    graph.operations.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  );
  const nodes = new Set<Node>();
  const pending = [...outputs];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const maker = makers.get(name);
    if (!maker || nodes.has(maker)) continue;
    nodes.add(maker);
    pending.push(...maker.inputs);
  }
  return nodes;
}
