import { describe, expect, it } from 'vitest';
import { type SamplingOptions, sampleToken } from '../../src/index.ts';
import { RooflineError } from '@roofline/tensor-core';
import { checkSamplingOptions } from '../../src/generation/sampling.ts';
import { randomNumbers } from '../../src/generation/random-numbers.ts';

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

  it('draws only from the k likeliest', () => {
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
    expect(sampleToken([-Infinity, 0], {}, () => 0)).toBe(1);
    // Weights that, taken away one after another, leave a rest of 0 of their sum.
    expect(sampleToken([-0.1, -0.2, -0.9, 0, -1000], {}, () => 1 - 2 ** -53)).toBe(3);
    expect(sampleToken([0, -0.2, -0.4, -0.4, -5], { topP: 0.9 }, () => 1 - 2 ** -53)).toBe(3);
  });

  it('draws all that has a probability alike at a temperature without end', () => {
    const temperature = Infinity;
    expect(shares([1, -Infinity, 0, 30], { temperature })).toEqual(near([1 / 3, 0, 1 / 3, 1 / 3]));
    expect(shares([1, -Infinity, 0, 30], { temperature, topK: 2 })).toEqual(near([1 / 2, 0, 0, 1 / 2]));
  });

  // Equal logits weigh exactly 1 each, so that the borders between tokens lie at exact numbers.
  it.each([
    [0, 0],
    [0.25 - 2 ** -53, 0],
    [0.25, 1],
    [0.75 - 2 ** -53, 2],
    [0.75, 3],
    [1 - 2 ** -53, 3],
  ])('gives each token its share of [0, 1), with its lower border: %f', (number, token) => {
    expect(sampleToken([5, 5, 5, 5], {}, () => number)).toBe(token);
  });

  it.each([
    [0.25, 0],
    [0.26, 1],
    [0.5, 1],
    [0.51, 2],
    [0.75, 2],
    [1, 3],
  ])('takes as few tokens as reach a topP of %f, up to token %i', (topP, last) => {
    expect(sampleToken([5, 5, 5, 5], { topP }, () => 1 - 2 ** -53)).toBe(last);
  });

  it('divides by the temperature', () => {
    // Weights of 1/9 and 1: a tenth and nine tenths.
    const draw = (number: number) => sampleToken([0, Math.log(3)], { temperature: 0.5 }, () => number);
    expect([draw(0.0999), draw(0.1001)]).toEqual([0, 1]);
    // Far logits would overflow if the largest were not taken away first.
    expect(sampleToken([1e6, 1e6], { temperature: 1e-3 }, () => 0.7)).toBe(1);
  });

  it('takes equal logits in order of their tokens', () => {
    expect(sampleToken([1, 2, 2, 2], { topK: 2 }, () => 0.9)).toBe(2);
    expect(sampleToken([1, 2, 2, 2], { topK: 2 }, () => 0.1)).toBe(1);
    expect(sampleToken([1, 2, 2, 2], { topK: 1 }, () => 0.9)).toBe(1);
  });

  it.each([[[NaN, 1]], [[1, NaN]], [[-Infinity, -Infinity]], [[Infinity, 1]], [[]]])(
    'refuses the logits %j',
    (bad) => {
      for (const temperature of [0, 1])
        expect(() => sampleToken(bad, { temperature }, () => 0.5)).toThrow(/give no probabilities/);
    },
  );

  it.each([[BigInt64Array.of(1n)], [new DataView(new ArrayBuffer(8))], ['12']])(
    'refuses %o, no numbers',
    (bad) => {
      expect(() => sampleToken(bad as never, {}, () => 0.5)).toThrow(/the logits must be a list of numbers/);
    },
  );

  it('takes options at their bounds', () => {
    for (const options of [{ temperature: 0 }, { topK: 1 }, { topP: 1 }])
      expect(() => checkSamplingOptions('sampleToken', options)).not.toThrow();
  });

  it.each([{ temperature: -1 }, { topK: 0 }, { topK: 1.5 }, { topP: 0 }, { topP: 1.1 }])(
    'refuses %o',
    (options) => {
      expect(() => checkSamplingOptions('sampleToken', options)).toThrow(RooflineError);
    },
  );
});

describe('randomNumbers', () => {
  it('are those of Mulberry32', () => {
    const draws = (seed: number) => Array.from({ length: 3 }, randomNumbers(seed));
    expect(draws(0)).toEqual([0.26642920868471265, 0.0003297457005828619, 0.2232720274478197]);
    expect(draws(5)).toEqual([0.6897749109193683, 0.7727432732935995, 0.21976301027461886]);
    expect(draws(2 ** 32 - 1)).toEqual([0.8964226141106337, 0.189478256739676, 0.7156526781618595]);
  });

  it('repeats by seed and fills [0, 1) evenly', () => {
    const draw = (seed: number) => Array.from({ length: 10_000 }, randomNumbers(seed));
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    const mean = draw(3).reduce((a, b) => a + b) / 10_000;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.015);
    expect(draw(4).every((x) => x >= 0 && x < 1)).toBe(true);
  });
});
