import { describe, expect, it } from 'vitest';
import { type SamplingOptions, sampleToken } from '../src/index.ts';
import { checkSamplingOptions } from '../src/sampling.ts';
import { randomNumbers } from '../src/random-numbers.ts';

/** How often each token came in `draws` draws, as shares. */
function shares(logits: readonly number[], options: SamplingOptions, draws = 20_000): number[] {
  const random = randomNumbers(5);
  const counts = logits.map(() => 0);
  for (let i = 0; i < draws; i++) counts[sampleToken(logits, options, random)]!++;
  return counts.map((count) => count / draws);
}

const probabilities = [0.1, 0.4, 0.2, 0.3];
const logits = probabilities.map(Math.log);

/** Shares within 0.016 of these; none at all where the expected one is 0. */
function near(expected: readonly number[]): unknown[] {
  return expected.map((share) => expect.closeTo(share, share === 0 ? 9 : 1.5));
}

describe('sampleToken', () => {
  it('draws by the softmax', () => {
    expect(shares(logits, {})).toEqual(near(probabilities));
  });

  it('sharpens with a low temperature, and takes the first likeliest at 0', () => {
    const squares = probabilities.map((p) => p ** 2 / 0.3);
    expect(shares(logits, { temperature: 0.5 })).toEqual(near(squares));
    expect(sampleToken([1, 3, 3, 2], { temperature: 0 }, () => 0.99)).toBe(1);
  });

  it('draws from the k likeliest alone', () => {
    expect(shares(logits, { topK: 2 })).toEqual(near([0, 4 / 7, 0, 3 / 7]));
    expect(shares(logits, { topK: 100 })).toEqual(near(probabilities));
  });

  it('draws from the smallest set that is likely enough', () => {
    expect(shares(logits, { topP: 0.69 })).toEqual(near([0, 4 / 7, 0, 3 / 7]));
    expect(shares(logits, { topP: 0.71 })).toEqual(near([0, 4 / 9, 2 / 9, 3 / 9]));
    expect(shares(logits, { topP: 1e-9 })).toEqual(near([0, 1, 0, 0]));
    expect(shares(logits, { topK: 2, topP: 0.5 })).toEqual(near([0, 1, 0, 0]));
  });

  it('never draws what has no probability', () => {
    expect(sampleToken([0, -Infinity], {}, () => 1 - 2 ** -53)).toBe(0);
  });

  it.each([{ temperature: -1 }, { topK: 0 }, { topK: 1.5 }, { topP: 0 }, { topP: 1.1 }])(
    'refuses %o',
    (options) => {
      expect(() => checkSamplingOptions(options)).toThrow(RangeError);
    },
  );
});

describe('randomNumbers', () => {
  it('repeats by seed and fills [0, 1) evenly', () => {
    const draw = (seed: number) => Array.from({ length: 10_000 }, randomNumbers(seed));
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    const mean = draw(3).reduce((a, b) => a + b) / 10_000;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.015);
    expect(draw(4).every((x) => x >= 0 && x < 1)).toBe(true);
  });
});
