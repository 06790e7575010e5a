import { Generator } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { Embedding, Linear, RMSNorm, TransformerLM } from '../../src/index.ts';
import { toyConfig } from '../toy-model.ts';

/** Of N(0, 1) cut at three: 1 - 2 · 3 φ(3) / (2 Φ(3) - 1), φ and Φ the density and the distribution. */
const cutVariance = 0.973_337;

/** What `count` draws say of their distribution, in units of `std`. */
function statistics(values: readonly number[], std: number) {
  const units = values.map((value) => value / std);
  const mean = units.reduce((sum, x) => sum + x, 0) / units.length;
  return {
    mean,
    std: Math.sqrt(units.reduce((sum, x) => sum + (x - mean) ** 2, 0) / units.length),
    farthest: units.reduce((most, x) => Math.max(most, Math.abs(x)), 0),
  };
}

/** Five standard errors on either side, of 120,000 draws: 1.4 % for the mean, 1 % for the spread. */
function expectCutNormal(values: readonly number[], std: number): void {
  expect(values).toHaveLength(120_000);
  const { mean, std: spread, farthest } = statistics(values, std);
  const standardError = 1 / Math.sqrt(values.length);
  expect(Math.abs(mean)).toBeLessThan(5 * standardError);
  expect(Math.abs(spread / Math.sqrt(cutVariance) - 1)).toBeLessThan((5 * standardError) / Math.SQRT2);
  // Of 120,000 draws 33 are expected beyond 2.97.
  expect(farthest).toBeGreaterThan(2.97);
  expect(farthest).toBeLessThanOrEqual(3 + 2 ** -22);
}

describe('new weights', () => {
  it('of Linear have the standard deviation √(2 / (in + out)), cut at three of them', () => {
    const { weight } = new Linear(300, 400, { generator: new Generator(1) });
    expect(weight.shape).toEqual([400, 300]);
    expectCutNormal(weight.toFlatArray(), Math.sqrt(2 / 700));
  });

  it('of Embedding have the standard deviation 1, or what it is given', () => {
    const { weight } = new Embedding(400, 300, { generator: new Generator(2) });
    expectCutNormal(weight.toFlatArray(), 1);
    const { weight: small } = new Embedding(400, 300, { generator: new Generator(2), std: 0.02 });
    expectCutNormal(small.toFlatArray(), 0.02);
  });

  it('of RMSNorm are ones', () => {
    expect(new RMSNorm(5, {}).weight.toFlatArray()).toEqual([1, 1, 1, 1, 1]);
  });

  it('of tied embeddings are as small as those of a head', () => {
    const model = new TransformerLM({
      ...toyConfig,
      vocabularySize: 400,
      modelDimension: 300,
      heads: 2,
      tieWordEmbeddings: true,
    });
    expectCutNormal(model.tokenEmbeddings.weight.toFlatArray(), Math.sqrt(2 / 700));
  });

  it.each(['float32', 'bfloat16'] as const)('are %s leaves that require a gradient', (dtype) => {
    const options = { generator: new Generator(1), dtype };
    for (const module of [new Linear(2, 3, options), new Embedding(2, 3, options), new RMSNorm(2, options)]) {
      const { weight } = module;
      expect([weight.dtype, weight.requiresGrad, weight.isLeaf]).toEqual([dtype, true, true]);
    }
  });

  it('may be those of another module, of the same shape', () => {
    const generator = new Generator(1);
    const { weight } = new Embedding(5, 3, { generator });
    expect(new Linear(3, 5, { generator, weight }).weight).toBe(weight);
    expect(() => new Linear(5, 3, { generator, weight })).toThrow(
      /weight \[5, 3\] to tie with must be \[3, 5\]/,
    );
  });
});
