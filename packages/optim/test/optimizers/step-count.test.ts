import { type Tensor, compile, tensor } from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { AdamW } from '../../src/index.ts';

const starts = [[1, 2], [3], [4, 5, 6]];

/** Parameters with gradients that stay, and their optimizer. */
function makeTraining() {
  const parameters = starts.map((start) => tensor(start, { requiresGrad: true }));
  const optimizer = new AdamW(parameters, { learningRate: 0.1 });
  const give = (which: readonly number[]) => {
    for (const [i, parameter] of parameters.entries()) {
      parameter.grad?.dispose();
      parameter.grad = which.includes(i) ? tensor(starts[i]!.map((x) => x / 10)) : null;
    }
  };
  return { parameters, optimizer, give };
}

const valuesOf = (parameters: readonly Tensor[]) => parameters.map((x) => x.toFlatArray());

it('parameters that make steps apart, and together again, count their own', () => {
  const [eager, mixed] = [makeTraining(), makeTraining()];
  const compiled = compile(() => mixed.optimizer.step());
  const all = [0, 1, 2];
  const rounds: [readonly number[], boolean][] = [
    ...[0, 1, 2, 3].map((): [number[], boolean] => [all, true]),
    [[1], false],
    ...[0, 1, 2].map((): [number[], boolean] => [all, true]),
    ...[0, 1].map((): [number[], boolean] => [[0, 2], true]),
    ...[0, 1, 2].map((): [number[], boolean] => [all, true]),
    [all, false],
    [all, true],
  ];
  for (const [which, isCompiled] of rounds) {
    for (const { give } of [eager, mixed]) give(which);
    eager.optimizer.step();
    if (isCompiled) compiled();
    else mixed.optimizer.step();
    expect(valuesOf(mixed.parameters)).toEqual(valuesOf(eager.parameters));
    expect(mixed.optimizer.stateDict().metadata).toEqual(eager.optimizer.stateDict().metadata);
  }
  expect(compiled.cache.hits).toBeGreaterThan(5);
  // A state that was loaded counts from there.
  for (const { optimizer } of [eager, mixed]) optimizer.loadStateDict(optimizer.stateDict());
  for (let i = 0; i < 3; i++) {
    eager.optimizer.step();
    compiled();
  }
  expect(valuesOf(mixed.parameters)).toEqual(valuesOf(eager.parameters));
});

it('a step that fails is not counted for what it has not updated', () => {
  const { parameters, optimizer, give } = makeTraining();
  give([0, 1, 2]);
  optimizer.step();
  const release = parameters[1]!.storage.hold({ start: 0, end: 4 }, 'a test');
  expect(() => optimizer.step()).toThrow('a test');
  release();
  expect(optimizer.stateDict().metadata['steps']).toBe('[2,1,1]');
  optimizer.step();
  expect(optimizer.stateDict().metadata['steps']).toBe('[3,2,2]');
});
