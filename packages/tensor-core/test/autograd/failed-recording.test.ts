import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const live = () => t.device('cpu').memoryStatistics().liveStorages;

const wrongSaves = t.defineOp({
  name: 'wrongSaves',
  autocast: 'none',
  infer: ([a]) => [a!],
  saves: () => ({ inputs: [0, 5] }),
  gradient: ({ gradients }) => gradients,
  cuda: { kind: 'pointwise', expressions: () => ['a'] },
  cpu: { kind: 'onnx', build: (graph, [a]) => [graph.node('Identity', [a!])] },
});

const failingSaves = t.defineView<undefined>({
  name: 'failingSaves',
  autocast: 'none',
  layout: (input) => input,
  saves: () => {
    throw new Error('no saves');
  },
  gradient: ({ gradients }) => gradients,
});

it.each<[string, (x: t.Tensor) => unknown, string]>([
  [
    'an op whose saves name what there is not',
    (x) => t.apply(wrongSaves, [x], undefined),
    'wrongSaves: its `saves`',
  ],
  ['a view whose saves fail', (x) => t.applyView(failingSaves, x, undefined), 'no saves'],
])('%s leaves nothing on the tape', (_, run, message) => {
  const before = live();
  const leaf = t.ones([4], { requiresGrad: true });
  const x = t.exp(leaf);
  expect(() => run(x)).toThrow(message);
  expect(() => run(x)).toThrow(message);
  // Only the handles hold the graph.
  x.dispose();
  leaf.dispose();
  expect(live()).toBe(before);
});

it('an op that saves something nonexistent throws an AutogradError', () => {
  const x = t.ones([4], { requiresGrad: true });
  expect(() => t.apply(wrongSaves, [x], undefined)).toThrow(t.AutogradError);
  x.dispose();
});
