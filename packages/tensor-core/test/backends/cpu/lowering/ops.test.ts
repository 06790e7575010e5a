import { describe, expect, test } from 'vitest';
import { applyOne } from '../../../../src/op/apply.ts';
import { DeviceError } from '@roofline/cuda/host';
import { defineOp } from '../../../../src/op/op.ts';
import { scope } from '../../../../src/tensor/lifetime/scope.ts';
import { copyOp, cpu, pointwise, tensorOf, transposed, valuesOf, viewOf } from '../fixtures.ts';

const addScalar = defineOp<{ scalar: number }>({
  name: 'addScalar',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  scalars: ({ scalar }) => [scalar],
  variant: () => '',
  cuda: { kind: 'pointwise', expressions: () => ['a + s0'] },
  cpu: { kind: 'onnx', build: (graph, [x], _, { scalars }) => [graph.node('Add', [x!, scalars[0]!])] },
});

const addInPlace = defineOp({
  name: 'add_',
  autocast: 'none',
  infer: ([a]) => [{ shape: a!.shape, dtype: a!.dtype }],
  mutates: [0],
  cuda: { kind: 'pointwise', expressions: () => ['a + b'] },
  cpu: { kind: 'onnx', build: (graph, [a, b]) => [graph.node('Add', [a!, b!])] },
});

const hostDouble = defineOp({
  name: 'double_',
  autocast: 'none',
  infer: ([a]) => [{ shape: a!.shape, dtype: a!.dtype }],
  mutates: [0],
  cuda: { kind: 'custom', launch: () => {} },
  cpu: {
    kind: 'host',
    run: ([input], [output]) => {
      for (let i = 0; i < input!.data.length; i++) output!.data[i] = 2 * Number(input!.data[i]);
    },
  },
});

describe('dtypes', () => {
  test('low precision is computed in float32 and rounded after each op', () => {
    let sums = { float16: tensorOf([1], [0], 'float16'), bfloat16: tensorOf([1], [0], 'bfloat16') };
    for (let i = 0; i < 1000; i++) {
      sums = {
        float16: applyOne(addScalar, [sums.float16], { scalar: 0.01 }),
        bfloat16: applyOne(addScalar, [sums.bfloat16], { scalar: 0.01 }),
      };
    }
    // As in torch: the sum stops where the step is under half a unit in the last place.
    expect(valuesOf(sums.bfloat16)).toEqual([4]);
    expect(valuesOf(sums.float16)[0]).toBeCloseTo(9.95, 1);
    expect(valuesOf(sums.float16)[0]).not.toBeCloseTo(10, 2);
  });

  test('comparisons give bool, which other ops read', () => {
    const less = pointwise('Less', 'bool');
    const mask = applyOne(less, [tensorOf([3]), tensorOf([3], [1, 1, 1])], undefined);
    expect(mask.dtype).toBe('bool');
    expect(valuesOf(mask)).toEqual([1, 0, 0]);
    expect(valuesOf(applyOne(pointwise('Not'), [mask], undefined))).toEqual([0, 1, 1]);
  });

  test.each(['float32', 'float64', 'int32', 'int64'] as const)(
    'scalars of %s change without a new session',
    (dtype) => {
      const x = tensorOf([2], [1, 2], dtype);
      for (const scalar of [3, -4]) {
        expect(valuesOf(applyOne(addScalar, [x], { scalar }))).toEqual([1 + scalar, 2 + scalar]);
      }
    },
  );
});

describe('ops that write in place', () => {
  test('replace the values of a whole storage, also as its views see them', () => {
    const target = tensorOf([2, 2]);
    const view = transposed(target);
    applyOne(addInPlace, [target, tensorOf([2, 2], [1, 1, 1, 1])], undefined);
    expect(valuesOf(target)).toEqual([1, 2, 3, 4]);
    expect(valuesOf(view)).toEqual([1, 3, 2, 4]);
  });

  test('write through a strided view and touch nothing else', () => {
    const storage = tensorOf([3, 3]);
    const column = viewOf(storage, { shape: [3], strides: [3], offset: 1 });
    applyOne(addInPlace, [column, tensorOf([3], [100, 100, 100])], undefined);
    expect(valuesOf(storage)).toEqual([0, 101, 2, 3, 104, 5, 6, 107, 8]);
    applyOne(hostDouble, [column], undefined);
    expect(valuesOf(storage)).toEqual([0, 202, 2, 3, 208, 5, 6, 214, 8]);
  });

  test('leave no buffer behind', () => {
    const target = tensorOf([8]);
    const before = cpu.memoryStatistics();
    for (let i = 0; i < 10; i++) applyOne(addInPlace, [target, target], undefined).dispose();
    const after = cpu.memoryStatistics();
    expect(after.liveStorages).toBe(before.liveStorages);
    expect(after.allocatedBytes).toBe(before.allocatedBytes);
  });
});

test('a failing graph names the op and the reason, and leaves no buffer behind', () => {
  const failing = defineOp({
    ...copyOp,
    name: 'pickTenth',
    mutates: [0],
    cpu: {
      kind: 'onnx',
      build: (graph, [x]) => [graph.node('Gather', [x!, graph.constant('int64', [2], [10, 10])])],
    },
  });
  const x = tensorOf([2]);
  const run = () => scope(() => void applyOne(failing, [x], undefined));
  const before = cpu.memoryStatistics().liveStorages;
  expect(run).toThrow(DeviceError);
  expect(run).toThrow(/pickTenth of \[2\] float32: ONNX Runtime: .*out of/);
  expect(cpu.memoryStatistics().liveStorages).toBe(before);
  expect(valuesOf(x)).toEqual([0, 1]);
});
