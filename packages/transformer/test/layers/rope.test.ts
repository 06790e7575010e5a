import { device, fromTypedArray, ones, scope, slice, tensor } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { RotaryEmbedding } from '../../src/index.ts';

const [contextLength, headDimension] = [9, 6];
const x = fromTypedArray(
  Float32Array.from({ length: 2 * contextLength * headDimension }, (_, i) => Math.sin(i)),
  [2, contextLength, headDimension],
);

/** Su et al. 2021, equation 34, for rows that begin at position `start`. */
function turned(values: readonly number[], length: number, start: number, theta: number): number[] {
  return values.map((_, i) => {
    const column = i % headDimension;
    const position = start + (Math.floor(i / headDimension) % length);
    const angle = position * theta ** (-(column - (column % 2)) / headDimension);
    const partner = column % 2 === 0 ? -values[i + 1]! : values[i - 1]!;
    return values[i]! * Math.cos(angle) + partner * Math.sin(angle);
  });
}

describe('RotaryEmbedding', () => {
  it.each([
    [0, 9],
    [0, 4],
    [1, 1],
    [3, 4],
    [8, 1],
  ])('turns by the positions from %i on, %i of them', (start, length) => {
    for (const theta of [undefined, 100]) {
      const positions = new RotaryEmbedding({ headDimension, contextLength, theta });
      const part = slice(x, 1, 0, length);
      const expected = turned(part.toFlatArray(), length, start, theta ?? 10_000);
      const actual = positions.apply(part, start).toFlatArray();
      // Two products of numbers below 1 and their sum, with tables rounded once.
      actual.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThan(4 * 2 ** -24));
    }
  });

  it('refuses positions outside the context', () => {
    const positions = new RotaryEmbedding({ headDimension, contextLength });
    expect(() => positions.apply(x, 1)).toThrow(/10 tokens is longer than the context of 9/);
    expect(() => positions.apply(slice(x, 1, 0, 2), 8)).toThrow(/10 tokens/);
    for (const start of [-1, 0.5, NaN])
      expect(() => positions.apply(slice(x, 1, 0, 1), start)).toThrow(
        /first position must be a whole number/,
      );
  });

  it('refuses heads of another dimension, and positions that do not match the tokens', () => {
    const positions = new RotaryEmbedding({ headDimension, contextLength });
    expect(() => positions.apply(ones([1, 2, headDimension + 2]))).toThrow(
      `RotaryEmbedding.apply: x [1, 2, ${headDimension + 2}] must be [..., T, ${headDimension}]; build the`,
    );
    expect(() => positions.apply(ones([2, headDimension]), tensor([1], { dtype: 'int32' }))).toThrow(
      `RotaryEmbedding.apply: the positions [1] must be [2], one for each token of x [2, ${headDimension}].`,
    );
  });

  it('keeps only its tables in memory', () => {
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const before = live();
    const positions = new RotaryEmbedding({ headDimension, contextLength });
    for (const start of [0, 0, 3, 4]) {
      scope(() => void positions.apply(slice(x, 1, 0, 2), start));
      positions.apply(x).dispose();
    }
    expect(live()).toBe(before + 2);
    positions.dispose();
    positions.dispose();
    expect(live()).toBe(before);
  });
});
