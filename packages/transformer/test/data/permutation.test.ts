import { describe, expect, it } from 'vitest';
import { permuted } from '../../src/data/permutation.ts';

const order = (count: number, seed = 0, epoch = 0) =>
  Array.from({ length: count }, (_, i) => permuted(i, count, seed, epoch));

describe('a random permutation', () => {
  it.each([1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4096, 4097])(
    'of %i takes each place once',
    (count) => {
      const sorted = Array.from({ length: count }, (_, i) => i);
      for (const [seed, epoch] of [
        [0, 0],
        [0, 1],
        [1, 0],
        [2 ** 53 - 1, 2 ** 33],
      ])
        // prettier-ignore
        expect(order(count, seed, epoch).sort((a, b) => a - b)).toEqual(sorted);
    },
  );

  it('is another for each seed, epoch and word of a seed', () => {
    const seeds = [[0, 0], [1, 0], [0, 1], [1, 1], [2 ** 32, 0], [2 ** 32 + 1, 0], [0, 2 ** 31]] as const; // prettier-ignore
    expect(new Set(seeds.map(([seed, epoch]) => order(100, seed, epoch).join())).size).toBe(seeds.length);
  });

  it.each([32, 41, 52])('reaches the largest of 2^%i', (bits) => {
    const places = Array.from({ length: 1000 }, (_, i) => permuted(2 ** bits - 1 - i, 2 ** bits, 3, 0));
    expect(new Set(places).size).toBe(1000);
    expect(Math.max(...places)).toBeGreaterThan(0.98 * 2 ** bits);
    expect(Math.max(...places)).toBeLessThan(2 ** bits);
  });

  // With 15 degrees of freedom, chi² is above 50 once in 80,000 times; in order, the first 64 would give 960.
  it.each([1000, 1024, 30_011])('of %i spreads each stretch evenly', (count) => {
    for (let seed = 0; seed < 20; seed++) {
      for (const start of [0, 100, count - 64]) {
        const found = new Array<number>(16).fill(0);
        for (let i = start; i < start + 64; i++)
          found[Math.floor((16 * permuted(i, count, seed, 0)) / count)]!++;
        const chiSquare = found.reduce((sum, times) => sum + (times - 4) ** 2 / 4, 0);
        expect(chiSquare).toBeLessThan(50);
      }
    }
  });

  it('takes neighbours a third of all places apart in the mean', () => {
    const places = order(10_000);
    const distances = places.slice(1).map((place, i) => Math.abs(place - places[i]!));
    const mean = distances.reduce((sum, distance) => sum + distance, 0) / distances.length;
    // The standard error is that of 10,000 distances, whose deviation is count / √18.
    expect(Math.abs(mean / 10_000 - 1 / 3)).toBeLessThan(4 / Math.sqrt(18 * 10_000));
  });
});
