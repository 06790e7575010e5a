import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { sharesOfTrace } from '../../../src/observe/profiler/node-shares.ts';

const node = (name: string, dur: number) => ({
  cat: 'Node',
  name: `${name}_1_kernel_time`,
  dur,
  args: { op_name: name },
});
const ended = { cat: 'Session', name: 'model_run', dur: 9, args: {} };

it('divides the time over the nodes as ONNX Runtime timed them, without the first run', () => {
  const trace = [
    { cat: 'Session', name: 'session_initialization', dur: 150, args: {} },
    { cat: 'Node', name: 'Mul_1_fence_before', dur: 7, args: { op_name: 'Mul' } },
    ...[node('Mul', 100), node('Add', 1), ended],
    ...[node('Mul', 4), node('Add', 1), ended],
    ...[node('Mul', 2), node('Add', 1), ended],
  ];
  expect(sharesOfTrace(JSON.stringify(trace))).toEqual([
    { opType: 'Mul', share: 0.75 },
    { opType: 'Add', share: 0.25 },
  ]);
});

it('divides evenly what is too quick to measure', () => {
  const trace = [node('Mul', 3), node('Add', 3), ended, node('Mul', 0), node('Add', 0), ended];
  expect(sharesOfTrace(JSON.stringify(trace)).map(({ share }) => share)).toEqual([0.5, 0.5]);
});

it('reports a graph that divides integers as a whole: zeros would end the process', async () => {
  const floorDivide = t.defineOp<void>({
    name: 'floorDivide',
    autocast: 'none',
    infer: ([a]) => [{ shape: a!.shape, dtype: a!.dtype }],
    cuda: { kind: 'pointwise', expressions: () => ['a / b'] },
    cpu: {
      kind: 'onnx',
      build: (graph, [a, b]) => [graph.node('Neg', [graph.node('Div', [a!, b!])])],
    },
  });
  const [a, b] = [t.full([4], 6, { dtype: 'int32' }), t.full([4], 2, { dtype: 'int32' })];
  const { kernels } = await t.profile(() => t.scope(() => void t.applyOne(floorDivide, [a, b], undefined)));
  expect(kernels.map(({ name }) => name)).toEqual(['Div Neg']);
});

it('distinguishes calls by the op, what its attributes select, shapes, dtypes and layouts', async () => {
  const chained = (name: string) =>
    t.defineOp<{ readonly scale: boolean }>({
      name,
      autocast: 'none',
      infer: ([a]) => [{ shape: a!.shape, dtype: a!.dtype }],
      variant: ({ scale }) => String(scale),
      cuda: { kind: 'pointwise', expressions: () => ['a'] },
      cpu: {
        kind: 'onnx',
        build: (graph, [a], { scale }) => [graph.node('Neg', [graph.node(scale ? 'Exp' : 'Abs', [a!])])],
      },
    });
  const [first, second] = [chained('chained'), chained('chained')];
  const x = t.ones([4, 4]);
  const nodes = async (op: typeof first, input: t.Tensor, scale: boolean) => {
    const { kernels } = await t.profile(() => t.scope(() => void t.applyOne(op, [input], { scale })));
    return kernels.map(({ name }) => name).sort();
  };
  expect(await nodes(first, x, true)).toEqual(['Exp', 'Neg']);
  expect(await nodes(first, x, false)).toEqual(['Abs', 'Neg']);
  expect(await nodes(second, x, true)).toEqual(['Exp', 'Neg']);
  expect(await nodes(first, t.transpose(x), true)).toEqual(['Exp', 'Neg', 'Transpose']);
  expect(await nodes(first, x.to('float16'), true)).toEqual(['Cast', 'Cast', 'Exp', 'Neg']);
});
