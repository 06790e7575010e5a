import { expect, it } from 'vitest';
import { randomJob } from '../../src/agree/agree-job.ts';
import { relativeError } from '../../src/agree/relative-error.ts';

it('measures the difference by norm, against the second', () => {
  expect(relativeError([1, 2], [1, 2])).toBe(0);
  expect(relativeError([3, 4.5], [3, 4])).toBeCloseTo(0.1, 12);
  expect(relativeError([1], [0])).toBe(Infinity);
  expect(relativeError([NaN], [1])).toBeNaN();
  expect(() => relativeError([1], [1, 2])).toThrow(RangeError);
});

it('draws configurations that a model can have, the same for the same seed', () => {
  for (let seed = 0; seed < 50; seed++) {
    const { shape, ids, batch, context } = randomJob(seed);
    expect(shape.modelDimension % (2 * shape.heads)).toBe(0);
    expect([ids.length, ids[0]!.length]).toEqual([batch, context]);
    expect(Math.max(...ids.flat())).toBeLessThan(shape.vocabularySize);
  }
  expect(randomJob(7)).toEqual(randomJob(7));
});
