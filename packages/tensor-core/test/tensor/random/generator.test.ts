import { describe, expect, it } from 'vitest';
import { RooflineError } from '../../../src/base/errors.ts';
import { Generator, checkGenerator } from '../../../src/tensor/random/generator.ts';

describe('a generator', () => {
  it('gives each call the next blocks of four words that nobody has used', () => {
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
    [
      'ARGUMENT',
      'uniform: the generator must be a Generator, as of new Generator(seed), not an object',
      () => checkGenerator('uniform', { seed: 0, offset: 0 } as Generator),
    ],
  ])('throws an error of code %s: %s', (code, message, make) => {
    expect(make).toThrow(RooflineError);
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });

  it('is known by its class', () => {
    expect(() => checkGenerator('uniform', new Generator(0))).not.toThrow();
  });
});
