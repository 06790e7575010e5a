import { CompileError } from '../../base/errors.ts';
import type { OnnxLowering } from '../../op/cpu-lowering.ts';
import type { OnnxValue } from '../../onnx/graph.ts';
import type { Call, Operand, GraphStorage } from '../graph/graph.ts';
import { type DType, byteSize } from '../../base/dtype.ts';
import { type Shape, formatShape, sameShape, sizeOf } from '../../base/shape.ts';
import { type OperandPlan, addToGraph, canReadInGraph } from '../../backends/cpu/lowering/op-graph.ts';
import { type OperandLayout, operandLayout } from '../../op/operand-layout.ts';
import { buildView, planView } from '../../backends/cpu/lowering/view-graph.ts';
import { OnnxGraphBuilder } from '../../onnx/onnx-graph.ts';

/** What an ONNX graph's input gets in each run: memory of a storage, or a scalar of a call with live attributes. */
export type InputPort =
  | { readonly kind: 'memory'; readonly storage: number; readonly byteOffset: number }
  | { readonly kind: 'scalar'; readonly call: Call; readonly index: number; readonly dtype: DType };

/** What an ONNX graph writes: a whole storage. */
export interface OutputPort {
  readonly storage: number;
}

/** Part of a graph as one ONNX graph. */
export interface Segment {
  readonly graph: OnnxGraphBuilder;
  readonly inputs: readonly InputPort[];
  readonly outputs: readonly OutputPort[];
}

/** Puts calls into one ONNX graph. A storage that a call has written is a value of it from then on; others are inputs. */
export class SegmentBuilder {
  readonly calls: Call[] = [];
  readonly graph: OnnxGraphBuilder;
  readonly #storages: readonly GraphStorage[];
  readonly #inputs: InputPort[] = [];
  /** The elements of storages that calls here have written. */
  readonly #written = new Map<number, OnnxValue>();
  /** The inputs, by storage, start and shape. */
  readonly #read = new Map<string, OnnxValue>();
  readonly #readStorages = new Set<number>();

  constructor(storages: readonly GraphStorage[], graph = new OnnxGraphBuilder()) {
    this.#storages = storages;
    this.graph = graph;
  }

  /** Defines a storage's elements, for one that no call here has written. */
  define(storage: number, elements: OnnxValue): void {
    this.#written.set(storage, elements);
  }

  /** A tensor after the calls so far, in its shape. Throws a CompileError for a layout that no node reads. */
  valueOf(operand: Operand): OnnxValue {
    const plan = planView(operand, this.#layoutOf(operand).storageSize);
    const elements = this.#written.get(operand.storage);
    if (!plan || !elements)
      throw new CompileError(
        `a tensor ${formatShape(operand.shape)} with strides ${formatShape(operand.strides)} is in no graph.`,
      );
    return buildView(this.graph, this.#part(elements, plan.start, plan.box), plan);
  }

  /** Whether a call may run before this ONNX graph as well as after it. What it writes of the graph's it reads, too. */
  isIndependentOf({ inputs, outputs }: Call): boolean {
    return (
      inputs.every(({ storage }) => !this.#written.has(storage)) &&
      outputs.every(({ storage }) => !this.#readStorages.has(storage))
    );
  }

  /** Adds a call, which `fitsInGraph`. */
  add(call: Call, lowering: OnnxLowering<never>): void {
    const { op, inputs, outputs, attributes } = call;
    const layouts = inputs.map((input) => this.#layoutOf(input));
    const scalars = op.scalars?.(attributes as never);
    const results = addToGraph(this.graph, op, lowering, layouts, outputs, attributes as never, {
      memory: (index, plan) => this.#memory(inputs[index]!.storage, layouts[index]!.dtype, plan),
      scalar: (index, dtype) => this.#scalar(call, index, dtype, scalars![index]!),
    });
    outputs.forEach(({ storage }, i) => this.#written.set(storage, results[i]!));
    this.calls.push(call);
  }

  /** The ONNX graph, whose outputs are the storages written here that later steps need. */
  finish(isNeeded: (storage: number) => boolean): Segment {
    const outputs: OutputPort[] = [];
    for (const [storage, value] of this.#written) {
      if (!isNeeded(storage)) continue;
      this.graph.output(value);
      outputs.push({ storage });
    }
    return { graph: this.graph, inputs: this.#inputs, outputs };
  }

  #layoutOf(operand: Operand): OperandLayout {
    return operandLayout({ ...operand, storage: this.#storages[operand.storage]! });
  }

  #memory(storage: number, dtype: DType, { view }: OperandPlan): OnnxValue {
    const { start, box } = view!;
    const written = this.#written.get(storage);
    if (written) return this.#part(written, start, box);
    const key = `${storage}@${start}[${box.join()}]`;
    let value = this.#read.get(key);
    if (!value) {
      value = this.graph.input(dtype, box);
      this.#inputs.push({ kind: 'memory', storage, byteOffset: start * byteSize(dtype) });
      this.#read.set(key, value);
      this.#readStorages.add(storage);
    }
    return value;
  }

  /** The elements of a storage from `start` on, in the shape `box`. */
  #part(whole: OnnxValue, start: number, box: Shape): OnnxValue {
    const graph = this.graph;
    const size = sizeOf(box);
    const total = sizeOf(whole.shape);
    const shaped = (shape: Shape) => (sameShape(whole.shape, shape) ? whole : graph.reshape(whole, shape));
    if (size === total) return shaped(box);
    const flat = shaped([total]);
    const bounds = [[start], [start + size], [0]].map((values) => graph.integers(values));
    return graph.reshape(graph.node('Slice', [flat, ...bounds], {}, { shape: [size] }), box);
  }

  #scalar(call: Call, index: number, dtype: DType, value: number): OnnxValue {
    if (call.live === null) return this.graph.scalar(dtype, value);
    this.#inputs.push({ kind: 'scalar', call, index, dtype });
    return this.graph.input(dtype, []);
  }
}

/** The nodes of a call; null where it has none, or needs memory in a layout that they do not read or write. */
export function fitsInGraph(call: Call, storages: readonly GraphStorage[]): OnnxLowering<never> | null {
  const lowering = call.op.cpu;
  if (lowering.kind !== 'onnx' || lowering.chunked) return null;
  return canBeNodes(call, lowering, storages) ? lowering : null;
}

/** Whether nodes can read a call's inputs, and its outputs are whole storages. */
export function canBeNodes(
  { inputs, outputs }: Call,
  { strided = false }: OnnxLowering<never>,
  storages: readonly GraphStorage[],
): boolean {
  const isReadable = inputs.every((input) => {
    const layout = operandLayout({ ...input, storage: storages[input.storage]! });
    return input.size > 0 && canReadInGraph(layout, strided);
  });
  const writesWhole = outputs.every(
    ({ storage, byteLength, isContiguous, size }) =>
      size > 0 && isContiguous && byteLength === storages[storage]!.byteLength,
  );
  return isReadable && writesWhole;
}
