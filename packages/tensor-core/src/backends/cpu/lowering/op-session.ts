import type { MemoryView } from '../../../base/memory-view.ts';
import { byteSize, viewAs } from '../../../base/dtype.ts';
import type { AllocationKind } from '@roofline/cuda/host';
import type { ComputeOp } from '../../../op/op.ts';
import type { BufferPool, CpuBuffer } from '../../../onnx/buffer-pool.ts';
import { bufferOf, storageElements } from './host-lowering.ts';
import type { InputBinding, OpGraph } from './op-graph.ts';
import { ScalarMemory } from './scalar-memory.ts';
import { Session } from '../../../onnx/session.ts';
import { gather, scatter } from '../../../op/strided-copy.ts';

/** A session for one op over inputs of one set of shapes, dtypes and layouts. */
export class OpSession {
  readonly #pool: BufferPool;
  readonly #session: Session;
  readonly #bindings: readonly InputBinding[];
  readonly #scalars: ScalarMemory;
  readonly #mutates: readonly (number | undefined)[];
  readonly #overwrites: boolean;
  /** The addresses of inputs, scalars and outputs; those of scalars never change. */
  readonly #addresses: number[];
  readonly #firstOutput: number;
  /** Buffers that live as long as one run. */
  readonly #temporary: CpuBuffer[] = [];

  constructor(
    pool: BufferPool,
    { graph, bindings, scalarDType }: OpGraph,
    mutates: ComputeOp<never>['mutates'] = [],
    overwrites = false,
  ) {
    this.#pool = pool;
    this.#session = new Session(graph);
    this.#bindings = bindings;
    this.#mutates = mutates;
    this.#overwrites = overwrites;
    this.#scalars = new ScalarMemory(scalarDType, graph.inputs.length - bindings.length);
    this.#addresses = graph.inputs.map((_, i) => this.#scalars.addressOf(i - bindings.length));
    this.#firstOutput = graph.inputs.length;
  }

  /**
   * Runs the op. What it writes in place goes to another buffer first, which then replaces the old one, unless the lowering
   * may overwrite as it goes.
   */
  run(
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    scalars: readonly number[] | undefined,
  ): void {
    if (scalars) this.#scalars.write(scalars);
    try {
      for (let i = 0; i < inputs.length; i++)
        this.#addresses[i] = this.#inputAddress(inputs[i]!, this.#bindings[i]!);
      const replacements: (CpuBuffer | null)[] = [];
      for (let i = 0; i < outputs.length; i++) {
        const output = outputs[i]!;
        const isBeside = this.#mutates[i] !== undefined && !(this.#overwrites && output.isContiguous);
        const replacement = isBeside ? this.#allocate(output.byteLength, 'storage') : null;
        replacements.push(replacement);
        this.#addresses[this.#firstOutput + i] = replacement?.address ?? addressOf(output);
      }
      this.#session.run(this.#addresses);
      replacements.forEach((replacement, i) => replacement && this.#replace(outputs[i]!, replacement));
    } finally {
      while (this.#temporary.length > 0) this.#pool.free(this.#temporary.pop()!);
    }
  }

  dispose(): void {
    this.#session.dispose();
  }

  #inputAddress(input: MemoryView, binding: InputBinding): number {
    if (input.isContiguous) return addressOf(input);
    if (binding.kind === 'memory') return bufferOf(input).address + binding.start * byteSize(input.dtype);
    const copy = this.#allocate(input.byteLength, 'workspace');
    gather(storageElements(input), input, viewAs(input.dtype, copy.memory, copy.byteOffset, input.size));
    return copy.address;
  }

  #allocate(byteLength: number, kind: AllocationKind): CpuBuffer {
    const buffer = this.#pool.allocate(byteLength, kind);
    this.#temporary.push(buffer);
    return buffer;
  }

  /** Gives `output` its new values: by swapping buffers if it fills its storage, else element by element. */
  #replace(output: MemoryView, replacement: CpuBuffer): void {
    const { storage, dtype, size, offset } = output;
    if (output.isContiguous && offset === 0 && output.byteLength === storage.byteLength) {
      this.#temporary[this.#temporary.indexOf(replacement)] = storage.buffer as CpuBuffer;
      storage.buffer = replacement;
    } else {
      scatter(
        viewAs(dtype, replacement.memory, replacement.byteOffset, size),
        storageElements(output),
        output,
      );
    }
  }
}

function addressOf(tensor: MemoryView): number {
  return bufferOf(tensor).address + tensor.offset * byteSize(tensor.dtype);
}
