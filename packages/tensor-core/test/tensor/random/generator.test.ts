import { describe, expect, it } from 'vitest';
import { RooflineError } from '@roofline/cuda/host';
import {
  type GeneratorState,
  Generator,
  checkGenerator,
  withoutMoves,
} from '../../../src/tensor/random/generator.ts';

describe('a generator', () => {
  it('gives each call the next unused blocks of four words', () => {
    const generator = new Generator(7, 3);
    expect([5, 4, 0, 1].map((count) => generator.take(count))).toEqual([3, 5, 6, 6]);
    expect([generator.seed, generator.offset]).toEqual([7, 7]);
    expect(new Generator(2 ** 53 - 1).take(1)).toBe(0);
  });

  it.each<[code: string, message: string, make: () => unknown]>([
    ['SEED', 'Generator: the seed must', () => new Generator(-1)],
    ['SEED', 'Generator: the seed must', () => new Generator(0.5)],
    ['SEED', 'Generator: the seed must', () => new Generator(2 ** 53)],
    ['RANGE', 'Generator: the offset must', () => new Generator(0, -1)],
    ['RANGE', 'Generator.take: the count must', () => new Generator(0).take(1.5)],
    ['SEED', 'Generator.manualSeed: the seed must', () => new Generator(0).manualSeed(-1)],
    [
      'SEED',
      'Generator.loadStateDict: the seed must',
      () => new Generator(0).loadStateDict({ seed: 0.5, offset: 0 }),
    ],
    [
      'RANGE',
      'Generator.loadStateDict: the offset must',
      () => new Generator(0).loadStateDict({ seed: 0, offset: -1 }),
    ],
    ['ARGUMENT', 'Generator.loadStateDict: the state must', () => new Generator(0).loadStateDict(5 as never)],
    [
      'ARGUMENT',
      'uniform: the generator must be a Generator, as of new Generator(seed), not an object',
      () => checkGenerator('uniform', { seed: 0, offset: 0 } as Generator),
    ],
  ])('throws an error of code %s: %s', (code, message, make) => {
    expect(make).toThrow(RooflineError);
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });

  it('begins at a seed, and goes on from a state that JSON has held, also of another generator', () => {
    const generator = new Generator(7, 3);
    expect(generator.manualSeed(2 ** 53 - 1)).toBe(generator);
    expect(generator.stateDict()).toEqual({ seed: 2 ** 53 - 1, offset: 0 });
    generator.take(9);
    const state = JSON.parse(JSON.stringify(generator.stateDict())) as GeneratorState;
    const other = new Generator(0, 100);
    other.loadStateDict(state);
    expect([other.seed, other.offset]).toEqual([2 ** 53 - 1, 3]);
    expect(other.takePlace(4)).toEqual(generator.takePlace(4));
    expect(state).toEqual({ seed: 2 ** 53 - 1, offset: 3 });
  });

  it('stays where it is when it is given an invalid state', () => {
    const generator = new Generator(7, 3);
    for (const state of [
      { seed: 1, offset: -1 },
      { seed: -1, offset: 1 },
    ])
      expect(() => generator.loadStateDict(state)).toThrow(RooflineError);
    expect(() => generator.manualSeed(0.5)).toThrow(RooflineError);
    expect(generator.stateDict()).toEqual({ seed: 7, offset: 3 });
  });

  it('is restored after functions that move it, nested ones too, and stays where it is moved outside', () => {
    const [first, second] = [new Generator(1, 10), new Generator(2, 20)];
    withoutMoves(() => {
      withoutMoves(() => first.manualSeed(5));
      expect(first.stateDict()).toEqual({ seed: 1, offset: 10 });
      second.offset = 7;
      first.loadStateDict({ seed: 8, offset: 9 });
    });
    expect([first, second].map((generator) => generator.stateDict())).toEqual([
      { seed: 1, offset: 10 },
      { seed: 2, offset: 20 },
    ]);
    expect(() =>
      withoutMoves(() => {
        first.offset = 0;
        throw new Error('in the middle');
      }),
    ).toThrow('in the middle');
    expect(first.offset).toBe(10);
    expect(second.manualSeed(3).stateDict()).toEqual({ seed: 3, offset: 0 });
  });

  it('is recognized by its class', () => {
    expect(() => checkGenerator('uniform', new Generator(0))).not.toThrow();
  });
});
