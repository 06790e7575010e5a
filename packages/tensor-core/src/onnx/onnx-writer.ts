import type { OnnxGraphContents, OnnxTensor, OnnxValue } from './graph.ts';
import type { TypedArray } from '../base/dtype.ts';
import type { OnnxNode } from './graph.ts';
import { onnxTypes } from './onnx-types.ts';
import { ProtobufWriter } from './protobuf-writer.ts';

// Field numbers are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
const irVersion = 10;
const opset = 21;
const attributeTypes = { float: 1, int: 2, string: 3, tensor: 4, graph: 5, ints: 7 };

/** Attributes that ONNX declares as `float`; other numbers are `int`. */
const floatAttributes = new Set([
  'alpha',
  'beta',
  'epsilon',
  'gamma',
  'lambd',
  'bias',
  'scale',
  'value_float',
]);

/** The graph as the bytes of an ONNX ModelProto. */
export function encodeModel(graph: OnnxGraphContents & { readonly standardOnly?: boolean }): Uint8Array {
  const writer = new ProtobufWriter();
  writer.integer(1, irVersion);
  writer.string(2, 'roofline');
  writer.message(7, () => writeGraph(writer, graph));
  const sets = [['', opset], ...(graph.standardOnly ? [] : [['com.microsoft', 1] as const])] as const;
  for (const [domain, version] of sets) {
    writer.message(8, () => {
      writer.string(1, domain);
      writer.integer(2, version);
    });
  }
  return writer.finish();
}

function writeGraph(writer: ProtobufWriter, graph: OnnxGraphContents): void {
  for (const node of graph.operations) writer.message(1, () => writeNode(writer, node));
  writer.string(2, 'graph');
  for (const constant of graph.constants)
    writer.message(5, () => writeTensor(writer, constant, constant.name));
  for (const value of graph.inputs) writer.message(11, () => writeValueInfo(writer, value));
  for (const value of graph.outputs) writer.message(12, () => writeValueInfo(writer, value));
}

function writeNode(writer: ProtobufWriter, node: OnnxNode): void {
  for (const name of node.inputs) writer.string(1, name);
  for (const name of node.outputs) writer.string(2, name);
  writer.string(3, `${node.opType}:${node.outputs[0]}`);
  writer.string(4, node.opType);
  for (const [name, value] of Object.entries(node.attributes)) {
    writer.message(5, () => writeAttribute(writer, name, value));
  }
  if (node.domain !== '') writer.string(7, node.domain);
}

function writeAttribute(writer: ProtobufWriter, name: string, value: OnnxNode['attributes'][string]): void {
  writer.string(1, name);
  if (typeof value === 'number') {
    if (floatAttributes.has(name)) {
      writer.float(2, value);
      writer.integer(20, attributeTypes.float);
    } else {
      writer.integer(3, value);
      writer.integer(20, attributeTypes.int);
    }
  } else if (typeof value === 'string') {
    writer.string(4, value);
    writer.integer(20, attributeTypes.string);
  } else if ('operations' in value) {
    writer.message(6, () => writeGraph(writer, value));
    writer.integer(20, attributeTypes.graph);
  } else if ('data' in value) {
    writer.message(5, () => writeTensor(writer, value));
    writer.integer(20, attributeTypes.tensor);
  } else {
    for (const item of value) writer.integer(8, item);
    writer.integer(20, attributeTypes.ints);
  }
}

function writeTensor(writer: ProtobufWriter, tensor: OnnxTensor, name?: string): void {
  for (const length of tensor.shape) writer.integer(1, length);
  writer.integer(2, onnxTypes[tensor.dtype]);
  if (name !== undefined) writer.string(8, name);
  writer.bytes(9, bytesOf(tensor.data));
}

function writeValueInfo(writer: ProtobufWriter, { name, dtype, shape, dimensions = shape }: OnnxValue): void {
  writer.string(1, name);
  writer.message(2, () =>
    writer.message(1, () => {
      writer.integer(1, onnxTypes[dtype]);
      writer.message(2, () => {
        for (const length of dimensions) writer.message(1, () => writeDimension(writer, length));
      });
    }),
  );
}

function writeDimension(writer: ProtobufWriter, length: number | string | null): void {
  if (typeof length === 'number') writer.integer(1, length);
  else if (length !== null) writer.string(2, length);
}

function bytesOf({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
