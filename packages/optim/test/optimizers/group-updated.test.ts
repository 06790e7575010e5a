import { expect, it } from 'vitest';
import { type Tensor, full, keep, ones, zeros } from '@roofline/tensor-core';
import { SGD } from '../../src/index.ts';

const parameters = () => [2, 3].map((size) => keep(full([size], 1)).requiresGrad_());

function optimizerOf(groups: readonly Tensor[]): SGD {
  for (const parameter of groups) parameter.grad = keep(ones(parameter.shape));
  return new SGD(
    groups.map((parameter) => ({ parameters: [parameter] })),
    { learningRate: 1 },
  );
}

it.each([
  ['step', (optimizer: SGD, listener: (group: number) => void) => optimizer.step(listener)],
  [
    'stepUnless',
    (optimizer: SGD, listener: (group: number) => void) => optimizer.stepUnless(zeros([]), listener),
  ],
] as const)('%s calls back after each group before the next one is updated', (_, step) => {
  const groups = parameters();
  const told: unknown[] = [];
  step(optimizerOf(groups), (group) => told.push([group, ...groups.map((x) => x.toFlatArray()[0])]));
  expect(told).toEqual([
    [0, 0, 1],
    [1, 0, 0],
  ]);
});

it('refuses what is no function before anything is updated', () => {
  const groups = parameters();
  const optimizer = optimizerOf(groups);
  expect(() => optimizer.step('x' as never)).toThrow(/SGD.step: .*listener/);
  expect(() => optimizer.stepUnless(zeros([]), 1 as never)).toThrow(/SGD.stepUnless: .*listener/);
  expect(groups[0]!.toFlatArray()).toEqual([1, 1]);
});
