import { describe, expect, it } from 'vitest';
import { type RopeScaling, checkRopeScaling, ropeFrequencies } from '../../src/layers/rope-scaling.ts';

const plainOf = (dimension: number, theta: number) =>
  Array.from({ length: dimension / 2 }, (_, pair) => 1 / theta ** ((2 * pair) / dimension));

/** `_compute_yarn_parameters` of transformers, line by line. */
function yarnOf(dimension: number, theta: number, scaling: Extract<RopeScaling, { type: 'yarn' }>): number[] {
  const { factor, originalContextLength, fastTurns = 32, slowTurns = 1, wholePairs = true } = scaling;
  const correctionOf = (rotations: number) =>
    (dimension * Math.log(originalContextLength / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
  let [low, high] = [correctionOf(fastTurns), correctionOf(slowTurns)];
  if (wholePairs) [low, high] = [Math.floor(low), Math.ceil(high)];
  [low, high] = [Math.max(low, 0), Math.min(high, dimension - 1)];
  if (low === high) high += 0.001;
  return plainOf(dimension, theta).map((extrapolated, pair) => {
    const kept = 1 - Math.min(Math.max((pair - low) / (high - low), 0), 1);
    return (extrapolated / factor) * (1 - kept) + extrapolated * kept;
  });
}

/** `_compute_llama3_parameters` of transformers, by wavelengths. */
function llama3Of(
  dimension: number,
  theta: number,
  scaling: Extract<RopeScaling, { type: 'llama3' }>,
): number[] {
  const { factor, originalContextLength, lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
  return plainOf(dimension, theta).map((frequency) => {
    const wavelength = (2 * Math.PI) / frequency;
    if (wavelength > originalContextLength / low) return frequency / factor;
    if (wavelength < originalContextLength / high) return frequency;
    const smooth = (originalContextLength / wavelength - low) / (high - low);
    return ((1 - smooth) * frequency) / factor + smooth * frequency;
  });
}

function expectNear(actual: readonly number[], expected: readonly number[]) {
  expect(actual).toHaveLength(expected.length);
  actual.forEach((value, pair) => expect(Math.abs(value / expected[pair]! - 1)).toBeLessThan(1e-13));
}

describe('stretched rotary positions', () => {
  it.each([
    // The ramp ends before the last of the pairs, between it and the last feature, and beyond that.
    [16, 10_000, { factor: 4, originalContextLength: 100 }],
    [8, 10, { factor: 4, originalContextLength: 150 }],
    [8, 10, { factor: 4, originalContextLength: 2000, fastTurns: 300 }],
    [8, 10, { factor: 4, originalContextLength: 2000, fastTurns: 300, wholePairs: false }],
    // It begins before the first pair, or has no length.
    [8, 10_000, { factor: 8, originalContextLength: 32 }],
    [8, 10_000, { factor: 8, originalContextLength: 4 }],
    [12, 500, { factor: 0.5, originalContextLength: 64, fastTurns: 7, slowTurns: 2 }],
  ] as const)('by yarn are those of transformers: %i features, theta %i, %o', (dimension, theta, rest) => {
    const scaling = { type: 'yarn', ...rest } as const;
    expectNear(ropeFrequencies(dimension, theta, scaling).frequencies, yarnOf(dimension, theta, scaling));
  });

  it.each([
    [4, undefined, 0.1 * Math.log(4) + 1],
    [1, undefined, 1],
    [0.5, undefined, 1],
    [4, 0.25, 0.25],
  ])('of yarn, by a factor of %f with attentionFactor %s, have the amplitude %f', (...numbers) => {
    const [factor, attentionFactor, amplitude] = numbers;
    const scaling = { type: 'yarn', factor, attentionFactor, originalContextLength: 64 } as const;
    expect(ropeFrequencies(8, 10_000, scaling).amplitude).toBeCloseTo(amplitude, 14);
  });

  it.each([
    [16, 10_000, { factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4 }],
    [64, 500_000, { factor: 3, lowFrequencyFactor: 2, highFrequencyFactor: 5 }],
  ] as const)('by llama3 are those of transformers: %i features, theta %i, %o', (dimension, theta, rest) => {
    const scaling = { type: 'llama3', originalContextLength: 512, ...rest } as const;
    const { frequencies, amplitude } = ropeFrequencies(dimension, theta, scaling);
    expectNear(frequencies, llama3Of(dimension, theta, scaling));
    expect(amplitude).toBe(1);
  });

  it('by llama3 need two factors apart', () => {
    const factors = { lowFrequencyFactor: 4, highFrequencyFactor: 4 };
    const scaling = { type: 'llama3', factor: 8, originalContextLength: 512, ...factors } as const;
    expect(() => checkRopeScaling('RotaryEmbedding', scaling)).toThrow(
      'ropeScaling.lowFrequencyFactor 4 must be below highFrequencyFactor 4',
    );
  });
});
