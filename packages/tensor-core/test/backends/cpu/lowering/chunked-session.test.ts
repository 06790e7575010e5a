// Is alone in a process: the length of a piece depends on the number of threads.
import type { OnnxLowering } from '../../../../src/op/cpu-lowering.ts';
import { expect, test } from 'vitest';
import { apply } from '../../../../src/op/apply.ts';
import { chunkSize } from '../../../../src/backends/cpu/lowering/chunked-graph.ts';
import { ShapeError } from '../../../../src/base/errors.ts';
import { defineOp } from '../../../../src/op/op.ts';
import { slice } from '../../../../src/ops/shape/views.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { tensorOf, transposed, valuesOf } from '../fixtures.ts';

interface Momentum {
  readonly rate: number;
}

/** velocity' = velocity + gradient; parameter' = parameter - rate · velocity'. */
function momentumOp(build: OnnxLowering<Momentum>['build']) {
  return defineOp<Momentum>({
    name: 'momentum',
    autocast: 'none',
    infer: ([parameter, velocity]) => [parameter!, velocity!],
    mutates: [0, 1],
    scalars: ({ rate }) => [rate],
    variant: () => '',
    cuda: { kind: 'custom', launch: () => {} },
    cpu: { kind: 'onnx', chunked: true, build },
  });
}

const momentum = momentumOp((graph, [parameter, velocity, gradient], _, { scalars: [rate] }) => {
  const next = graph.node('Add', [velocity!, gradient!]);
  return [graph.node('Sub', [parameter!, graph.node('Mul', [next, rate!])]), next];
});

test.each([
  ['pieces and the rest', 2 * chunkSize() + 5],
  ['one piece and the rest', chunkSize() + 3],
  ['pieces alone', 2 * chunkSize()],
  ['one piece', chunkSize()],
  ['less than a piece', 7],
])('%s are updated in place', (_, size) => {
  const numbers = Array.from({ length: size }, (_, i) => i % 1000);
  const [parameter, velocity, gradient] = [numbers, numbers, numbers].map((values) =>
    tensorOf([size], values),
  );
  const { buffer } = parameter!.storage;
  apply(momentum, [parameter!, velocity!, gradient!], { rate: 0.5 });
  apply(momentum, [parameter!, velocity!, gradient!], { rate: 0.25 });
  expect(parameter!.storage.buffer).toBe(buffer);
  const wrong = (values: number[], factor: number) =>
    values.findIndex((value, i) => value !== factor * (i % 1000));
  expect(wrong(valuesOf(velocity!), 3)).toBe(-1);
  expect(wrong(valuesOf(parameter!), 1 - 0.5 * 2 - 0.25 * 3)).toBe(-1);
});

test('pieces begin where their tensors do', () => {
  const size = chunkSize() + 3;
  const [parameters, velocities, gradients] = [1, 2, 4].map((value) =>
    tensorOf([size + 1], Array<number>(size + 1).fill(value)),
  );
  const tail = (tensor: Tensor) => slice(tensor, 0, 1, size + 1);
  apply(momentum, [tail(parameters!), tail(velocities!), tail(gradients!)], { rate: 0.5 });
  expect(valuesOf(parameters!).slice(0, 2)).toEqual([1, -2]);
  expect(valuesOf(parameters!).at(-1)).toBe(-2);
  expect(valuesOf(velocities!).filter((value) => value !== 6)).toEqual([2]);
});

test('NaN stays where it is, in pieces too', () => {
  const size = chunkSize() + 3;
  const numbers = Array<number>(size).fill(1);
  const places = [0, chunkSize() - 1, chunkSize(), size - 1];
  const gradient = tensorOf(
    [size],
    numbers.map((one, i) => (places.includes(i) ? NaN : one)),
  );
  const [parameter, velocity] = [tensorOf([size], numbers), tensorOf([size], numbers)];
  apply(momentum, [parameter, velocity, gradient], { rate: 0.5 });
  for (const tensor of [parameter, velocity])
    expect(valuesOf(tensor).flatMap((value, i) => (Number.isNaN(value) ? [i] : []))).toEqual(places);
});

test('pieces of low precision are rounded once for each output', () => {
  const size = chunkSize() + 3;
  const [parameter, velocity, gradient] = [2 ** -8, 2 ** -8, 1].map((value) =>
    tensorOf([size], Array<number>(size).fill(value), 'bfloat16'),
  );
  apply(momentum, [parameter!, velocity!, gradient!], { rate: -1 });
  // 1 + 2^-8 rounds to 1; with the parameter it is 1 + 2^-7, which an earlier rounding would lose.
  expect(new Set(valuesOf(velocity!))).toEqual(new Set([1]));
  expect(new Set(valuesOf(parameter!))).toEqual(new Set([1 + 2 ** -7]));
});

test('tensors of low precision', () => {
  const [parameter, velocity, gradient] = [0, 1, 2].map((value) =>
    tensorOf([2, 2], Array(4).fill(value), 'bfloat16'),
  );
  apply(momentum, [parameter!, velocity!, gradient!], { rate: 0.5 });
  expect(valuesOf(parameter!)).toEqual([-1.5, -1.5, -1.5, -1.5]);
});

test('tensors that cannot be cut into the same pieces', () => {
  const square = tensorOf([2, 2]);
  expect(() =>
    apply(momentum, [square, tensorOf([2, 2]), transposed(tensorOf([2, 2]))], { rate: 1 }),
  ).toThrow(/momentum: .* strided view \[2, 2\]/);
  expect(() => apply(momentum, [square, tensorOf([2, 2]), tensorOf([3])], { rate: 1 })).toThrow(ShapeError);
});

test('a graph that could read an input after it was replaced is refused', () => {
  const late = momentumOp((graph, [parameter, velocity, gradient]) => [
    graph.node('Sub', [parameter!, velocity!]),
    graph.node('Add', [velocity!, gradient!]),
  ]);
  expect(() => apply(late, [tensorOf([2]), tensorOf([2]), tensorOf([2])], { rate: 1 })).toThrow(
    /output 1 replaces input 1 in place, but a Sub/,
  );
});
