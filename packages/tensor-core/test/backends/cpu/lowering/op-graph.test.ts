import type { OnnxLowering } from '../../../../src/op/cpu-lowering.ts';
import type { OnnxValue } from '../../../../src/onnx/graph.ts';
import { expect, test } from 'vitest';
import { OnnxGraphBuilder } from '../../../../src/onnx/onnx-graph.ts';
import { type OperandSources, addToGraph } from '../../../../src/backends/cpu/lowering/op-graph.ts';
import type { OperandLayout } from '../../../../src/op/operand-layout.ts';
import { Session } from '../../../../src/onnx/session.ts';
import { HostMemory } from '@roofline/cuda/host';
import type { Op } from '../../../../src/op/op.ts';
import { contiguousStrides, sizeOf } from '../../../../src/base/shape.ts';
import { copyOp, pointwise } from '../fixtures.ts';

function dense({ shape, dtype }: OnnxValue): OperandLayout {
  return { shape, dtype, strides: contiguousStrides(shape), offset: 0, storageSize: sizeOf(shape) };
}

/** Adds an op whose operands' storages are values of the same graph. */
function add(
  graph: OnnxGraphBuilder,
  op: Op<undefined>,
  storages: OnnxValue[],
  layouts: OperandLayout[],
): OnnxValue {
  const sources: OperandSources = {
    memory: (index, { view }) => graph.reshape(storages[index]!, view!.box),
    scalar: () => {
      throw new Error('these ops have no scalars');
    },
  };
  const outputs = op.infer(layouts, undefined);
  return addToGraph(graph, op, op.cpu as OnnxLowering<undefined>, layouts, outputs, undefined, sources)[0]!;
}

test('several ops share one graph, and views between them are nodes', () => {
  const graph = new OnnxGraphBuilder();
  const x = graph.input('float32', [2, 3]);
  const sum = add(graph, pointwise('Add'), [x, x], [dense(x), dense(x)]);
  const transposed = { ...dense(sum), shape: [3, 2], strides: [1, 3] };
  graph.output(add(graph, copyOp, [sum], [transposed]));
  const [input, output] = [new HostMemory(24), new HostMemory(24)];
  input.floats.set([1, 2, 3, 4, 5, 6]);
  new Session(graph).run([input.address, output.address]);
  expect([...output.floats.subarray(0, 6)]).toEqual([2, 8, 4, 10, 6, 12]);
});
