import { isDeepStrictEqual } from 'node:util';
import type { DType } from '../base/dtype.ts';
import type { OnnxGraphContents, OnnxNode, OnnxTensor, OnnxValue } from './graph.ts';
import { onnxTypes } from './onnx-types.ts';
import type { Term } from './size-polynomial.ts';
import { type SizedConstant, sizedConstant } from './sized-constant.ts';

/** The graph of a function for inputs of these sizes: of each dynamic axis one, in their order. */
export interface SizedGraph {
  readonly sizes: readonly number[];
  readonly graph: OnnxGraphContents;
}

/** A name for the length of some dimensions of inputs, which are always equal. */
export interface DynamicAxis {
  readonly name: string;
  readonly places: readonly { readonly input: number; readonly dimension: number }[];
}

/** Throws the error that says why the graph is for no other sizes. */
export type Refuse = (why: string) => never;

/**
 * The one graph of which those of `samples` are cases: whole numbers that differ among them, as in shapes, are calculated
 * from the shapes of the inputs.
 */
export function dynamicGraph(
  samples: readonly SizedGraph[],
  axes: readonly DynamicAxis[],
  refuse: Refuse,
): OnnxGraphContents {
  const [{ graph: first }] = samples as [SizedGraph];
  if (samples.some(({ graph }) => graph.operations.length !== first.operations.length))
    refuse('it runs other ops at other sizes');
  const writer = new DynamicWriter(samples, axes, refuse);
  first.operations.forEach((_, index) => writer.add(index));
  return writer.finish();
}

class DynamicWriter {
  readonly #samples: readonly SizedGraph[];
  readonly #axes: readonly DynamicAxis[];
  readonly #refuse: Refuse;
  readonly #operations: OnnxNode[] = [];
  readonly #constants: (OnnxTensor & { readonly name: string })[] = [];
  /** Of each sample: constants by name, and the places of the nodes that make other values. */
  readonly #known: readonly (readonly [ReadonlyMap<string, OnnxTensor>, ReadonlyMap<string, string>])[];
  /** What was calculated from sizes, by what it is. */
  readonly #calculated = new Map<string, string>();
  #names = 0;

  constructor(samples: readonly SizedGraph[], axes: readonly DynamicAxis[], refuse: Refuse) {
    this.#samples = samples;
    this.#axes = axes;
    this.#refuse = refuse;
    this.#known = samples.map(({ graph }) => [
      new Map(graph.constants.map((each) => [each.name, each])),
      placesOf(graph),
    ]);
  }

  /** Adds the node at `index` of all samples. */
  add(index: number): void {
    const nodes = this.#samples.map(({ graph }) => graph.operations[index]!);
    const [node] = nodes as [OnnxNode];
    const { opType, attributes } = node;
    if (nodes.some((each) => each.opType !== opType || each.inputs.length !== node.inputs.length))
      this.#refuse('it runs other ops at other sizes');
    if (nodes.some((each) => !isDeepStrictEqual(each.attributes, attributes)))
      this.#refuse(`a node ${opType} has other attributes at other sizes`);
    const inputs = node.inputs.map((_, i) =>
      this.#input(
        nodes.map((each) => each.inputs[i]!),
        opType,
      ),
    );
    this.#operations.push({ ...node, inputs });
  }

  finish(): OnnxGraphContents {
    const [{ graph }] = this.#samples as [SizedGraph];
    const inputs = graph.inputs.map((value, input): OnnxValue => ({
      ...value,
      dimensions: value.shape.map((length, dimension) => this.#nameOf(input, dimension) ?? length),
    }));
    const outputs = graph.outputs.map((value, i): OnnxValue => {
      const shapes = this.#samples.map((sample) => sample.graph.outputs[i]!.shape);
      return {
        ...value,
        dimensions: value.shape.map((_, d) => this.#dimension(shapes.map((shape) => shape[d]!))),
      };
    });
    return { inputs, outputs, operations: this.#operations, constants: this.#constants };
  }

  #nameOf(input: number, dimension: number): string | undefined {
    const isThere = (place: DynamicAxis['places'][number]) =>
      place.input === input && place.dimension === dimension;
    return this.#axes.find(({ places }) => places.some(isThere))?.name;
  }

  /** A length that all samples share, the name of an axis, or null for what follows from axes. */
  #dimension(lengths: readonly number[]): number | string | null {
    if (lengths.every((length) => length === lengths[0])) return lengths[0]!;
    const axis = this.#axes.find((_, i) =>
      this.#samples.every(({ sizes }, sample) => sizes[i] === lengths[sample]),
    );
    return axis?.name ?? null;
  }

  /** The name of what nodes read that has these names in the samples. */
  #input(names: readonly string[], opType: string): string {
    const constants = names.map((name, i) => this.#known[i]![0].get(name));
    if (constants.every((each) => each !== undefined)) return this.#constant(constants, opType);
    const places = names.map((name, i) => this.#known[i]![1].get(name));
    if (places.some((place) => place !== places[0])) this.#refuse('it runs other ops at other sizes');
    return names[0]!;
  }

  #constant(tensors: readonly OnnxTensor[], opType: string): string {
    const [first] = tensors as [OnnxTensor];
    if (tensors.every(({ shape, data }) => isDeepStrictEqual([shape, data], [first.shape, first.data])))
      return this.#plain(first);
    const sizes = this.#samples.map((sample) => sample.sizes);
    const rule = sizedConstant(tensors, sizes);
    if (rule !== null) return this.#made(rule, first);
    return this.#refuse(
      `${opType} reads a constant, ${first.dtype} [${first.shape.join(', ')}], that depends on sizes in another way than as a sum ` +
        'of products of them: make it by ops from the inputs, or pass it as an input',
    );
  }

  #plain({ dtype, shape, data }: OnnxTensor): string {
    const bytes = Buffer.from(data.buffer, data.byteOffset, Math.min(data.byteLength, 1024));
    const content = data.byteLength > 1024 ? null : `${dtype}[${shape.join()}]${bytes.toString('latin1')}`;
    return this.#once(content, () => {
      const name = this.#newName();
      this.#constants.push({ name, dtype, shape, data });
      return name;
    });
  }

  #made(rule: SizedConstant, { dtype, shape }: OnnxTensor): string {
    if (rule.kind === 'triangle') return this.#triangle(rule);
    const numbers = rule.kind === 'range' ? this.#range(rule) : this.#list(rule.elements, shape.length === 0);
    return dtype === 'int64' ? numbers : this.#node('Cast', [numbers], { to: onnxTypes[dtype] });
  }

  /** A list of whole numbers, or the one in it without its dimension. */
  #list(elements: readonly (readonly Term[])[], isScalar: boolean): string {
    const parts = elements.map((terms) => this.#sumOf(terms));
    if (isScalar) return this.#scalar(parts[0]!);
    return parts.length === 1 ? parts[0]! : this.#node('Concat', parts, { axis: 0 });
  }

  #range({ start, step, length }: Omit<SizedConstant & { kind: 'range' }, 'kind'>): string {
    const all = this.#node('Mul', [this.#integer(step), this.#sumOf(length)]);
    const end = this.#node('Add', [this.#integer(start), all]);
    return this.#node(
      'Range',
      [this.#integer(start), end, this.#integer(step)].map((each) => this.#scalar(each)),
    );
  }

  #triangle({ rows, columns, diagonal }: SizedConstant & { kind: 'triangle' }): string {
    const counted = (length: readonly Term[]) => this.#range({ start: 0, step: 1, length });
    const last = this.#node('Add', [counted(rows), this.#sumOf(diagonal)]);
    return this.#node('LessOrEqual', [counted(columns), this.#node('Unsqueeze', [last, this.#integer(1)])]);
  }

  /** The one number of a list, without its dimension. */
  #scalar(list: string): string {
    return this.#node('Squeeze', [list, this.#integer(0)]);
  }

  #sumOf(terms: readonly Term[]): string {
    if (terms.length === 0) return this.#integer(0);
    return terms.map((term) => this.#termOf(term)).reduce((a, b) => this.#node('Add', [a, b]));
  }

  #termOf({ coefficient, powers }: Term): string {
    const factors = powers.flatMap((power, axis) => Array.from({ length: power }, () => this.#size(axis)));
    const all = coefficient === 1 && factors.length > 0 ? factors : [this.#integer(coefficient), ...factors];
    return all.reduce((a, b) => this.#node('Mul', [a, b]));
  }

  /** The length of an axis as a list of one. */
  #size(axis: number): string {
    const { input, dimension } = this.#axes[axis]!.places[0]!;
    const { name } = this.#samples[0]!.graph.inputs[input]!;
    return this.#node('Shape', [name], { start: dimension, end: dimension + 1 });
  }

  #integer(value: number): string {
    return this.#plain({ dtype: 'int64' satisfies DType, shape: [1], data: BigInt64Array.of(BigInt(value)) });
  }

  #node(opType: string, inputs: readonly string[], attributes: OnnxNode['attributes'] = {}): string {
    return this.#once(`${opType}(${inputs.join()})${JSON.stringify(attributes)}`, () => {
      const name = this.#newName();
      this.#operations.push({ opType, domain: '', inputs, outputs: [name], attributes });
      return name;
    });
  }

  #once(what: string | null, make: () => string): string {
    const known = what === null ? undefined : this.#calculated.get(what);
    const name = known ?? make();
    if (what !== null) this.#calculated.set(what, name);
    return name;
  }

  /** Graphs name their values `v0`, `v1`..., and no input or output is named so. */
  #newName(): string {
    return `v0${this.#names++}`;
  }
}

/** What makes each value of a graph: an input, or an output of a node. */
function placesOf({ inputs, operations }: OnnxGraphContents): Map<string, string> {
  const places = new Map<string, string>([['', 'nothing']]);
  inputs.forEach(({ name }, i) => places.set(name, `input ${i}`));
  operations.forEach(({ outputs }, i) => outputs.forEach((name, j) => places.set(name, `${i}.${j}`)));
  return places;
}
