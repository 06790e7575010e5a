import { describe, expect, it } from 'vitest';
import { agreeResult, agreeScales, randomJob } from '../../../src/peer/agree/agree-job.ts';

describe.each(agreeScales)('a random %s configuration', (scale) => {
  it('is one that a model can have, the same for the same seed', () => {
    for (let seed = 0; seed < 50; seed++) {
      const { shape, ids, batch, context } = randomJob(seed, scale);
      expect(shape.modelDimension % (2 * shape.heads)).toBe(0);
      expect([ids.length, ids[0]!.length]).toEqual([batch, context]);
      expect(Math.max(...ids.flat())).toBeLessThan(shape.vocabularySize);
    }
    expect(randomJob(7, scale)).toEqual(randomJob(7, scale));
    expect(randomJob(7, scale)).not.toEqual(randomJob(8, scale));
  });
});

it('wide configurations reach the kernels of large models', () => {
  for (let seed = 0; seed < 50; seed++) {
    const { shape, batch, context } = randomJob(seed, 'wide');
    expect(shape.modelDimension).toBeGreaterThanOrEqual(256);
    expect(shape.modelDimension).toBeLessThanOrEqual(768);
    expect(batch * context).toBeGreaterThanOrEqual(512);
    expect(batch * context).toBeLessThanOrEqual(1024);
    expect(shape.vocabularySize).toBeGreaterThanOrEqual(900);
  }
});

it('an error that is not a number comes out of its process as such', () => {
  const told = {
    torch: '2',
    values: { loss: NaN },
    gradients: { weight: Infinity },
    parameters: { weight: 1e-7 },
  };
  const { values, gradients, parameters } = agreeResult.parse(JSON.parse(JSON.stringify(told)));
  expect([values, gradients, parameters]).toEqual([{ loss: NaN }, { weight: NaN }, { weight: 1e-7 }]);
});
