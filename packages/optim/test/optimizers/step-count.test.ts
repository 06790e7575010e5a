import { type Device, type Tensor, compile, device as open, tensor } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { AdamW } from '../../src/index.ts';

const starts = [[1, 2], [3], [4, 5, 6]];

/** Parameters with gradients that stay, and their optimizer. */
function makeTraining(device: Device) {
  const parameters = starts.map((start) => tensor(start, { device, requiresGrad: true }));
  const optimizer = new AdamW(parameters, { learningRate: 0.1 });
  const give = (which: readonly number[]) => {
    for (const [i, parameter] of parameters.entries()) {
      parameter.grad?.dispose();
      const gradient = starts[i]!.map((x) => x / 10);
      parameter.grad = which.includes(i) ? tensor(gradient, { device }) : null;
    }
  };
  return { parameters, optimizer, give };
}

const valuesOf = (parameters: readonly Tensor[]) => parameters.map((x) => x.toFlatArray());

// The CPU makes a call for each parameter, a GPU one for all.
function describeCounts(device: Device): void {
  it('parameters that make steps apart, and together again, count their own', () => {
    const [eager, mixed] = [makeTraining(device), makeTraining(device)];
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
    const made = starts.map(() => 0);
    for (const [which, isCompiled] of rounds) {
      for (const i of which) made[i]!++;
      for (const { give } of [eager, mixed]) give(which);
      eager.optimizer.step();
      if (isCompiled) compiled();
      else mixed.optimizer.step();
      expect(valuesOf(mixed.parameters)).toEqual(valuesOf(eager.parameters));
      for (const { optimizer } of [eager, mixed])
        expect(JSON.parse(optimizer.stateDict().metadata['steps']!)).toEqual(made);
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

  it.each<[what: string, orders: readonly (readonly number[])[]]>([
    ['some leave those that have made a step together', [[0, 1, 2], [0, 2], [1]]],
    ['one leaves, and all are together again', [[0, 1, 2], [1], [0, 2], [0, 1, 2]]],
    ['they come one after the other', [[2], [1, 2], [0, 1, 2], [0, 1]]],
    ['one of two leaves for one that has made as many steps', [[0, 1], [2], [0, 2], [1, 2], [0]]],
    ['those that have made as many steps apart', [[0], [1], [2], [0, 1, 2], [1, 2]]],
  ])('only those with a gradient are counted where %s', (_, orders) => {
    const { parameters, optimizer, give } = makeTraining(device);
    // Each for itself, which shares no count.
    const alone = makeTraining(device);
    const singly = alone.parameters.map((parameter) => new AdamW([parameter], { learningRate: 0.1 }));
    const made = starts.map(() => 0);
    for (const which of orders) {
      for (const each of [give, alone.give]) each(which);
      optimizer.step();
      for (const i of which) {
        made[i]!++;
        singly[i]!.step();
      }
      expect(JSON.parse(optimizer.stateDict().metadata['steps']!)).toEqual(made);
    }
    expect(valuesOf(parameters)).toEqual(valuesOf(alone.parameters));
  });
}

describe('on the CPU', () => {
  const cpu = open('cpu');
  describeCounts(cpu);

  it('a step that fails is not counted for what it has not updated', () => {
    const { parameters, optimizer, give } = makeTraining(cpu);
    give([0, 1, 2]);
    optimizer.step();
    const release = parameters[1]!.storage.hold({ start: 0, end: 4 }, 'a test');
    expect(() => optimizer.step()).toThrow('a test');
    release();
    expect(optimizer.stateDict().metadata['steps']).toBe('[2,1,1]');
    optimizer.step();
    expect(optimizer.stateDict().metadata['steps']).toBe('[3,2,2]');
  });
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () => {
  describeCounts(openEmulatedDevice());
});
