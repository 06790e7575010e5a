import type { MemoryView } from '../../../base/memory-view.ts';
import { byteSize } from '../../../base/dtype.ts';
import { ShapeError } from '../../../base/errors.ts';
import { formatShape } from '../../../base/shape.ts';
import { bufferOf } from './host-lowering.ts';
import type { ChunkedGraph } from './chunked-graph.ts';
import { ScalarMemory } from './scalar-memory.ts';
import { Session } from '../../../onnx/session.ts';

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

/** A session for an element-wise op that runs piece by piece, and writes mutated inputs in place. */
export class ChunkedSession {
  readonly #graph: ChunkedGraph;
  readonly #session: Session;
  readonly #scalars: ScalarMemory;
  /** The addresses of the graph's inputs and outputs in a run. */
  readonly #addresses: number[] = [];

  constructor(graph: ChunkedGraph) {
    this.#graph = graph;
    this.#session = new Session(graph.graph);
    const scalarCount = graph.inputs.filter(({ kind }) => kind === 'scalar').length;
    this.#scalars = new ScalarMemory(graph.scalarDType ?? 'float32', scalarCount);
  }

  run(
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    scalars: readonly number[] | undefined,
  ): void {
    if (scalars) this.#scalars.write(scalars);
    const addresses = this.#addresses;
    addresses.length = 0;
    for (const port of this.#graph.inputs)
      addresses.push(
        port.kind === 'scalar'
          ? this.#scalars.addressOf(port.index)
          : elementAddress(inputs[port.tensor]!, port.start),
      );
    for (const { tensor, start } of this.#graph.outputs)
      addresses.push(elementAddress(outputs[tensor]!, start));
    this.#session.run(addresses);
  }

  dispose(): void {
    this.#session.dispose();
  }
}

function elementAddress(tensor: MemoryView, element: number): number {
  return bufferOf(tensor).address + (tensor.offset + element) * byteSize(tensor.dtype);
}
