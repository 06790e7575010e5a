import { Generator } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { generatorOfRank } from '../../src/training/rank-generators.ts';

const header = (generators: readonly { seed: number; offset: number }[]) => ({
  ...({ version: 1, step: 3, schedule: null, generator: generators[0] } as const),
  ...(generators.length > 1 && { generators }),
});

describe('the random generator with which a rank goes on', () => {
  const saved = header([
    { seed: 7, offset: 40 },
    { seed: 9, offset: 50 },
    { seed: 8, offset: 60 },
  ]);

  it('is its own, where there was such a rank', () => {
    expect([0, 1, 2].map((rank) => generatorOfRank(saved, rank))).toEqual(saved.generators);
  });

  it('is that of a seed after all others, from the place of rank 0', () => {
    expect([3, 4].map((rank) => generatorOfRank(saved, rank))).toEqual([
      { seed: 10, offset: 40 },
      { seed: 11, offset: 40 },
    ]);
    const alone = header([{ seed: 7, offset: 40 }]);
    expect([0, 1].map((rank) => generatorOfRank(alone, rank))).toEqual([
      { seed: 7, offset: 40 },
      { seed: 8, offset: 40 },
    ]);
  });

  it('comes to the seed 0 after the greatest that there is', () => {
    const last = header([{ seed: Number.MAX_SAFE_INTEGER - 1, offset: 5 }]);
    const seeds = [1, 2, 3].map((rank) => generatorOfRank(last, rank).seed);
    expect(seeds).toEqual([Number.MAX_SAFE_INTEGER, 0, 1]);
    for (const seed of seeds) expect(() => new Generator(seed)).not.toThrow();
  });
});
