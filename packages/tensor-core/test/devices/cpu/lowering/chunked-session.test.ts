import type { OnnxLowering } from '../../../../src/op/cpu-lowering.ts';
import { expect, test } from 'vitest';
import { apply } from '../../../../src/op/apply.ts';
import { chunkSize } from '../../../../src/devices/cpu/lowering/chunked-session.ts';
import { ShapeError } from '../../../../src/errors.ts';
import { defineOp } from '../../../../src/op/op.ts';
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

test('pieces and the rest are updated in place', () => {
  const size = 2 * chunkSize() + 5;
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
