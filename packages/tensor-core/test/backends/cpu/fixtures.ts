import { openCpuDevice } from '../../../src/backends/cpu/device.ts';
import { type DType, type TypedArray } from '../../../src/base/dtype.ts';
import { bytesOfArray, fromNumbers, toNumbers } from '../../../src/tensor/host-values.ts';
import { type Op, defineOp } from '../../../src/op/op.ts';
import { type Layout, type Shape, sizeOf } from '../../../src/base/shape.ts';
import { Tensor } from '../../../src/tensor/tensor.ts';
import { gather } from '../../../src/op/strided-copy.ts';
import { storageElements } from '../../../src/backends/cpu/lowering/host-lowering.ts';

export const cpu = openCpuDevice();

/** A tensor of the given numbers, or of 0, 1, 2... */
export function tensorOf(shape: Shape, values?: readonly number[], dtype: DType = 'float32'): Tensor {
  const tensor = Tensor.allocate(cpu, dtype, shape);
  const numbers = values ?? Array.from({ length: sizeOf(shape) }, (_, i) => i);
  cpu.write(tensor.storage.buffer, 0, bytesOfArray(fromNumbers(dtype, numbers)));
  return tensor;
}

/** Another layout of the same storage. */
export function viewOf({ storage, dtype }: Tensor, { shape, strides, offset }: Layout): Tensor {
  return new Tensor(storage.retain(), dtype, shape, strides, offset);
}

/** The last two dimensions swapped. */
export function transposed(tensor: Tensor): Tensor {
  const swap = (list: Shape) => [...list.slice(0, -2), list.at(-1)!, list.at(-2)!];
  return viewOf(tensor, { shape: swap(tensor.shape), strides: swap(tensor.strides), offset: tensor.offset });
}

/** A tensor's elements in row-major order, read by a loop rather than the device. */
export function valuesOf(tensor: Tensor): number[] {
  const elements = storageElements(tensor);
  const dense = new (elements.constructor as new (length: number) => TypedArray)(tensor.size);
  gather(elements, tensor, dense);
  return toNumbers(tensor.dtype, dense);
}

/** An element-wise op of one ONNX node. */
export function pointwise(opType: string, dtype?: DType): Op<undefined> {
  return defineOp({
    name: opType,
    autocast: 'none',
    infer: (inputs) => [
      { shape: longest(inputs.map(({ shape }) => shape)), dtype: dtype ?? inputs[0]!.dtype },
    ],
    cuda: { kind: 'pointwise', expressions: () => ['a'] },
    cpu: { kind: 'onnx', build: (graph, inputs) => [graph.node(opType, inputs)] },
  });
}

/** An op that copies, and does not broadcast by itself. */
export const copyOp = defineOp({
  name: 'copy',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  cuda: { kind: 'custom', launch: () => {} },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
});

function longest(shapes: readonly Shape[]): Shape {
  return shapes.reduce((a, b) => (sizeOf(b) > sizeOf(a) ? b : a));
}
