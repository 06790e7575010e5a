import type { OnnxValue } from './graph.ts';
import { byteSize } from '../base/dtype.ts';
import { HostMemory } from '@roofline/cuda/host';
import type { OnnxGraphBuilder } from './onnx-graph.ts';
import { onnxRuntime } from './onnx-runtime.ts';
import { onnxTypes } from './onnx-types.ts';
import { sizeOf } from '../base/shape.ts';

/** One input or output as ONNX Runtime takes it; only its address changes from run to run. */
interface Port {
  readonly byteLength: number;
  readonly onnxType: number;
  readonly shapeAddress: number;
  readonly rank: number;
}

const wordBytes = 8;

/** A graph ready to run on memory that the caller owns: nothing is copied. */
export class Session {
  readonly #handle: number;
  readonly #inputCount: number;
  readonly #ports: readonly Port[];
  /** Handles of the inputs' and outputs' values, addresses of their names, their shapes, their names. */
  readonly #memory: HostMemory;
  readonly #namesAddress: number;

  /** With a `tracePrefix` ONNX Runtime times each node of each run, more slowly; see `endTrace`. */
  constructor(graph: OnnxGraphBuilder, tracePrefix?: string) {
    const values = [...graph.inputs, ...graph.outputs];
    const lengths = values.reduce((sum, { shape }) => sum + shape.length, 0);
    const names = values.map(({ name }) => `${name}\0`);
    const nameBytes = names.reduce((sum, name) => sum + name.length, 0);
    this.#memory = new HostMemory((2 * values.length + lengths) * wordBytes + nameBytes);
    this.#namesAddress = this.#memory.address + values.length * wordBytes;
    this.#inputCount = graph.inputs.length;
    this.#ports = writePorts(values, this.#memory, 2 * values.length * wordBytes);
    writeNames(names, this.#memory, values.length * wordBytes, (2 * values.length + lengths) * wordBytes);
    this.#handle = onnxRuntime().createSession(graph.encode(), tracePrefix);
  }

  /**
   * Runs the graph on the addresses of its inputs, followed by those of its outputs. Throws a DeviceError. `runOptions` is a
   * handle of ONNX Runtime; 0 for none.
   */
  run(addresses: readonly number[], runOptions = 0): void {
    const runtime = onnxRuntime();
    const memory = this.#memory;
    const count = this.#ports.length;
    let created = 0;
    try {
      for (; created < count; created++) {
        const { byteLength, shapeAddress, rank, onnxType } = this.#ports[created]!;
        const out = memory.address + created * wordBytes;
        runtime.createTensor(addresses[created]!, byteLength, shapeAddress, rank, onnxType, out);
      }
      const inputBytes = this.#inputCount * wordBytes;
      runtime.run(
        this.#handle,
        this.#namesAddress,
        memory.address,
        this.#inputCount,
        this.#namesAddress + inputBytes,
        memory.address + inputBytes,
        count - this.#inputCount,
        runOptions,
      );
    } finally {
      for (let i = 0; i < created; i++) runtime.releaseTensor(memory.readUint64(i * wordBytes));
    }
  }

  /** Ends the timing of nodes. Returns the path of the trace, which starts with the prefix: events as JSON. */
  endTrace(): string {
    return onnxRuntime().endTrace(this.#handle);
  }

  dispose(): void {
    onnxRuntime().releaseSession(this.#handle);
  }
}

function writePorts(values: readonly OnnxValue[], memory: HostMemory, start: number): Port[] {
  let offset = start;
  return values.map(({ dtype, shape }) => {
    const shapeAddress = memory.address + offset;
    for (const length of shape) {
      memory.writeInt64(offset, length);
      offset += wordBytes;
    }
    return {
      byteLength: sizeOf(shape) * byteSize(dtype),
      onnxType: onnxTypes[dtype],
      shapeAddress,
      rank: shape.length,
    };
  });
}

function writeNames(names: readonly string[], memory: HostMemory, pointers: number, start: number): void {
  let offset = start;
  names.forEach((name, i) => {
    memory.writeInt64(pointers + i * wordBytes, memory.address + offset);
    offset += new TextEncoder().encodeInto(name, memory.bytes.subarray(offset)).written;
  });
}
