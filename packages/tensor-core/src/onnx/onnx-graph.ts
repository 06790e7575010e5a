import { type DType, type TypedArray, isFloatingPoint, typedArray } from '../base/dtype.ts';
import { DTypeError, ShapeError } from '../base/errors.ts';
import type { OnnxAttributes, OnnxGraph, OnnxNodeOptions, OnnxTensor, OnnxValue, OnnxNode } from './graph.ts';
import type { TensorSpec } from '../base/memory-view.ts';
import { type Shape, formatShape, sizeOf } from '../base/shape.ts';
import { onnxTypes } from './onnx-types.ts';
import { encodeModel } from './onnx-writer.ts';

/** Constants of up to this many bytes are compared by value, so that equal ones are written once. */
const deduplicatedBytes = 1024;

/** A graph of ONNX nodes, built front to back: one op's, or a whole training step's. It chooses the names of its values. */
export class OnnxGraphBuilder implements OnnxGraph {
  readonly standardOnly: boolean;
  readonly inputs: OnnxValue[] = [];
  readonly outputs: OnnxValue[] = [];
  /** In the order in which they were added, which is a topological one. */
  readonly operations: OnnxNode[] = [];
  readonly constants: (OnnxTensor & { readonly name: string })[] = [];
  /** Whether a node divides integers: dividing by zero would end the process. */
  dividesIntegers = false;
  readonly #constantsByContent = new Map<string, OnnxValue>();
  readonly #notYetOutputs = new Set<string>();
  readonly #prefix: string;
  #valueCount = 0;

  /** `prefix` starts the names of its values, which must differ from those of a graph that has this one as a `scan`'s body. */
  constructor(prefix = 'v', { standardOnly = false }: { readonly standardOnly?: boolean } = {}) {
    this.#prefix = prefix;
    this.standardOnly = standardOnly;
  }

  /** A value that is given to each run, by that name if it has one. */
  input(dtype: DType, shape: Shape, name?: string): OnnxValue {
    const value = name === undefined ? this.#value({ dtype, shape }) : { name, dtype, shape };
    this.inputs.push(value);
    return value;
  }

  /** Makes `value` the graph's next output; it may be an input, a constant, or an output already. */
  output(value: OnnxValue): void {
    this.outputs.push(this.#notYetOutputs.delete(value.name) ? value : this.node('Identity', [value]));
    this.#notYetOutputs.delete(this.outputs.at(-1)!.name);
  }

  /** Makes `value` the graph's next output under a name of its own. */
  namedOutput(value: OnnxValue, name: string): void {
    const { dtype, shape } = value;
    this.operations.push({
      opType: 'Identity',
      domain: '',
      inputs: [value.name],
      outputs: [name],
      attributes: {},
    });
    this.outputs.push({ name, dtype, shape });
  }

  /** A node of one output, which has the shape and dtype of the first input unless `options` say otherwise. */
  node(
    opType: string,
    inputs: readonly (OnnxValue | null)[],
    attributes: OnnxAttributes = {},
    options: OnnxNodeOptions = {},
  ): OnnxValue {
    const shape = options.shape ?? inputs[0]?.shape;
    const dtype = options.dtype ?? inputs[0]?.dtype;
    if (!shape || !dtype) throw new ShapeError(`${opType}: a node without inputs needs a shape and a dtype.`);
    return this.nodes(opType, inputs, attributes, [{ shape, dtype }], options)[0]!;
  }

  /** A node of several outputs. A null among the inputs leaves an optional one out. */
  nodes(
    opType: string,
    inputs: readonly (OnnxValue | null)[],
    attributes: OnnxAttributes,
    outputs: readonly TensorSpec[],
    options: { readonly domain?: string } = {},
  ): OnnxValue[] {
    if (opType === 'Div' || opType === 'Mod') this.dividesIntegers ||= !isFloatingPoint(outputs[0]!.dtype);
    const { domain = '' } = options;
    if (this.standardOnly && domain !== '') throw new Error(`${opType} of ${domain} is no operator of ONNX.`);
    return this.#add(opType, domain, inputs, attributes, outputs);
  }

  /**
   * Runs `body` over the first elements of the inputs' first dimension, then over the second ones, and so on: they are
   * its inputs, and its outputs are those of the results, in whose memory it writes them. Its nodes may read values of
   * this graph, too.
   */
  scan(body: OnnxGraphBuilder, inputs: readonly OnnxValue[]): OnnxValue[] {
    const outputs = body.outputs.map(({ dtype, shape }) => ({
      dtype,
      shape: [inputs[0]!.shape[0]!, ...shape],
    }));
    this.dividesIntegers ||= body.dividesIntegers;
    return this.#add('Scan', '', inputs, { body, num_scan_inputs: inputs.length }, outputs);
  }

  /** `value` as `dtype`: itself, if it already is. */
  cast(value: OnnxValue, dtype: DType): OnnxValue {
    if (value.dtype === dtype) return value;
    return this.node('Cast', [value], { to: onnxTypes[dtype] }, { dtype });
  }

  /** A constant; plain numbers are converted to `dtype`. */
  constant(dtype: DType, shape: Shape, data: TypedArray | readonly number[]): OnnxValue {
    const elements = ArrayBuffer.isView(data) ? data : elementsOf(dtype, data);
    if (elements.length !== sizeOf(shape)) {
      throw new ShapeError(`constant: ${elements.length} elements do not fill ${formatShape(shape)}.`);
    }
    if (elements.byteLength > deduplicatedBytes) return this.#constant(dtype, shape, elements);
    const bytes = Buffer.from(elements.buffer, elements.byteOffset, elements.byteLength);
    const content = `${dtype}${formatShape(shape)}${bytes.toString('latin1')}`;
    const known = this.#constantsByContent.get(content);
    if (known) return known;
    const value = this.#constant(dtype, shape, elements);
    this.#constantsByContent.set(content, value);
    return value;
  }

  /** A constant of rank 0. */
  scalar(dtype: DType, value: number): OnnxValue {
    return this.constant(dtype, [], [value]);
  }

  /** A constant list of whole numbers, as the inputs of Reshape, Slice and Expand have it. */
  integers(values: readonly number[]): OnnxValue {
    return this.constant('int64', [values.length], values);
  }

  /** `value` with its elements, in row-major order, in another shape: at run time this moves nothing. */
  reshape(value: OnnxValue, shape: Shape): OnnxValue {
    // allowzero: a length of 0 is meant literally, not as "unchanged".
    return this.node('Reshape', [value, this.integers(shape)], { allowzero: 1 }, { shape });
  }

  /** The graph as a ModelProto. */
  encode(): Uint8Array {
    return encodeModel(this);
  }

  #add(
    opType: string,
    domain: string,
    inputs: readonly (OnnxValue | null)[],
    attributes: OnnxNode['attributes'],
    outputs: readonly TensorSpec[],
  ): OnnxValue[] {
    const values = outputs.map((spec) => this.#value(spec));
    for (const { name } of values) this.#notYetOutputs.add(name);
    this.operations.push({
      opType,
      domain,
      inputs: inputs.map((input) => input?.name ?? ''),
      outputs: values.map(({ name }) => name),
      attributes,
    });
    return values;
  }

  #constant(dtype: DType, shape: Shape, data: TypedArray): OnnxValue {
    const value = this.#value({ dtype, shape });
    this.constants.push({ ...value, data });
    return value;
  }

  #value({ dtype, shape }: TensorSpec): OnnxValue {
    return { name: `${this.#prefix}${this.#valueCount++}`, dtype, shape };
  }
}

function elementsOf(dtype: DType, numbers: readonly number[]): TypedArray {
  if (isFloatingPoint(dtype) && dtype !== 'float32' && dtype !== 'float64') {
    throw new DTypeError(
      `constant: write float32 numbers and cast() them to ${dtype}, or give its raw bits.`,
    );
  }
  const elements = typedArray(dtype, numbers.length);
  if (elements instanceof BigInt64Array) numbers.forEach((number, i) => (elements[i] = BigInt(number)));
  else elements.set(numbers);
  return elements;
}
