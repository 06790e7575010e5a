import { describe, expect, test } from 'vitest';
import { HostMemory } from '@roofline/cuda/host';
import { OnnxGraphBuilder } from '../../src/onnx/onnx-graph.ts';
import { ProtobufWriter } from '../../src/onnx/protobuf-writer.ts';
import { Session } from '../../src/onnx/session.ts';
import { DTypeError, ShapeError } from '../../src/base/errors.ts';
import { sizeOf } from '../../src/base/shape.ts';

/** Runs a graph of float32 inputs and outputs. */
function run(graph: OnnxGraphBuilder, ...inputs: number[][]): number[][] {
  const session = new Session(graph);
  const memories = [...graph.inputs, ...graph.outputs].map(
    ({ shape }) => new HostMemory(4 * Math.max(1, sizeOf(shape))),
  );
  inputs.forEach((values, i) => memories[i]!.floats.set(values));
  session.run(memories.map(({ address }) => address));
  session.dispose();
  return graph.outputs.map(({ shape }, i) => [
    ...memories[graph.inputs.length + i]!.floats.subarray(0, sizeOf(shape)),
  ]);
}

describe('OnnxGraphBuilder', () => {
  test('attributes of every type reach ONNX Runtime', () => {
    const graph = new OnnxGraphBuilder();
    const x = graph.input('float32', [2, 2]);
    const filled = graph.node(
      'ConstantOfShape',
      [graph.integers([2, 2])],
      { value: { dtype: 'float32', shape: [1], data: Float32Array.of(0.5) } },
      { dtype: 'float32', shape: [2, 2] },
    );
    const product = graph.node('Gemm', [x, filled], { alpha: 2, transA: 1 });
    const gelu = graph.node('Gelu', [graph.node('Transpose', [product], { perm: [1, 0] })], {
      approximate: 'none',
    });
    graph.output(product);
    graph.output(gelu);
    const [values, activated] = run(graph, [1, 2, 3, 40]);
    expect(values).toEqual([4, 4, 42, 42]);
    expect(activated![1]).toBeCloseTo(42, 5);
  });

  test('nodes of several outputs, left-out inputs, and values that are no node', () => {
    const graph = new OnnxGraphBuilder();
    const x = graph.input('float32', [4]);
    const spec = { dtype: 'float32' as const, shape: [2] };
    const [low, high] = graph.nodes('Split', [x], { axis: 0, num_outputs: 2 }, [spec, spec]);
    graph.output(graph.node('Clip', [x, null, graph.scalar('float32', 2.5)]));
    for (const value of [high!, low!, high!, x, graph.constant('float32', [1], [7])]) graph.output(value);
    expect(run(graph, [1, 2, 3, 4])).toEqual([[1, 2, 2.5, 2.5], [3, 4], [1, 2], [3, 4], [1, 2, 3, 4], [7]]);
  });

  test('a body runs over one row after another, with values of the graph around it', () => {
    const graph = new OnnxGraphBuilder();
    const [x, y] = [graph.input('float32', [3, 2]), graph.input('float32', [3, 2])];
    const factor = graph.input('float32', []);
    const body = new OnnxGraphBuilder('row');
    const [a, b] = [body.input('float32', [2]), body.input('float32', [2])];
    body.output(body.node('Add', [body.node('Mul', [a, factor]), body.scalar('float32', 0.5)]));
    body.output(body.node('ReduceSum', [b, body.integers([0])], { keepdims: 0 }, { shape: [] }));
    body.output(a);
    const [scaled, sums, same] = graph.scan(body, [x, y]);
    expect([scaled, sums, same].map((value) => value!.shape)).toEqual([[3, 2], [3], [3, 2]]);
    for (const value of [sums!, scaled!, same!]) graph.output(value);
    expect(run(graph, [1, 2, 3, 4, 5, 6], [1, 1, 2, 2, 3, 4], [10])).toEqual([
      [2, 4, 7],
      [10.5, 20.5, 30.5, 40.5, 50.5, 60.5],
      [1, 2, 3, 4, 5, 6],
    ]);
  });

  test('a body that divides integers is reported', () => {
    const graph = new OnnxGraphBuilder();
    const body = new OnnxGraphBuilder('row');
    const n = body.input('int32', [2]);
    body.output(body.node('Div', [n, n]));
    expect(graph.dividesIntegers).toBe(false);
    graph.scan(body, [graph.input('int32', [3, 2])]);
    expect(graph.dividesIntegers).toBe(true);
  });

  test('equal constants are written once, however they are distinguished', () => {
    const graph = new OnnxGraphBuilder();
    expect(graph.scalar('float32', 1)).toBe(graph.scalar('float32', 1));
    expect(graph.integers([1, 2])).toBe(graph.constant('int64', [2], BigInt64Array.of(1n, 2n)));
    const different = [
      graph.scalar('float32', 0),
      graph.scalar('float32', -0),
      graph.scalar('float64', 0),
      graph.constant('float32', [1], [0]),
      graph.scalar('int32', 0),
    ];
    expect(new Set(different.map(({ name }) => name)).size).toBe(5);
    expect(graph.constants.length).toBe(7);
  });

  test('casting to the own dtype adds nothing', () => {
    const graph = new OnnxGraphBuilder();
    const x = graph.input('float32', [2]);
    expect(graph.cast(x, 'float32')).toBe(x);
    expect(graph.cast(x, 'int64').dtype).toBe('int64');
    expect(graph.operations.length).toBe(1);
  });

  test('errors', () => {
    const graph = new OnnxGraphBuilder();
    expect(() => graph.constant('float32', [3], [1, 2])).toThrow(ShapeError);
    expect(() => graph.scalar('bfloat16', 1)).toThrow(DTypeError);
    expect(() => graph.node('RandomNormal', [])).toThrow(/needs a shape and a dtype/);
  });
});

describe('ProtobufWriter', () => {
  // The examples of https://protobuf.dev/programming-guides/encoding/.
  test.each([
    [1, 150, '089601'],
    [1, -2, '08feffffffffffffffff01'],
    [1, 2 ** 40, '08808080808020'],
    [2, 0, '1000'],
  ])('field %i with the integer %i', (field, value, hexadecimal) => {
    const writer = new ProtobufWriter();
    writer.integer(field, value);
    expect(Buffer.from(writer.finish()).toString('hex')).toBe(hexadecimal);
  });

  test('strings, floats and messages', () => {
    const writer = new ProtobufWriter();
    writer.string(2, 'testing');
    writer.float(1, 1.5);
    writer.message(3, () => writer.integer(1, 150));
    expect(Buffer.from(writer.finish()).toString('hex')).toBe(
      ['120774657374696e67', '0d0000c03f', '1a83808000', '089601'].join(''),
    );
  });

  test('grows', () => {
    const writer = new ProtobufWriter();
    for (let i = 0; i < 10; i++) writer.bytes(1, new Uint8Array(10_000).fill(i));
    expect(writer.finish().length).toBe(10 * (1 + 2 + 10_000));
    expect(writer.finish().at(-1)).toBe(9);
  });
});
