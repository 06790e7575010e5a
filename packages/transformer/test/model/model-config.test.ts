import { describe, expect, it } from 'vitest';
import {
  type ModelConfig,
  ModelConfigError,
  TransformerLM,
  countParameters,
  presetConfig,
  presetNames,
  presets,
} from '../../src/index.ts';
import { toyConfig } from '../toy-model.ts';

describe('sizes', () => {
  it.each([
    [{ layers: 0 }, /layers must be .* got 0/],
    [{ modelDimension: 2.5 }, /modelDimension .* got 2.5/],
    [{ modelDimension: 12, heads: 4 }, /modelDimension 12 must be a multiple of 2 · heads = 8/],
    [{ ropeTheta: 0 }, /ropeTheta/],
    [{ tieWordEmbeddings: 1 as unknown as boolean }, /tieWordEmbeddings must be true or false, got 1/],
  ])('refuses %o', (change, message) => {
    const build = () => new TransformerLM({ ...toyConfig, ...change });
    expect(build).toThrow(ModelConfigError);
    expect(build).toThrow(message);
  });

  it('refuses a name that does not exist, and names the nearest', () => {
    const misspelt = { ...toyConfig, tieEmbeddings: true };
    expect(() => new TransformerLM(misspelt)).toThrow(/"tieEmbeddings"; did you mean "tieWordEmbeddings"/);
  });

  it('gives presets by name, with changes', () => {
    expect(Object.keys(presets).sort()).toEqual([...presetNames].sort());
    expect(presetConfig('small', { contextLength: 128 })).toEqual({ ...presets.small, contextLength: 128 });
    expect(() => presetConfig('huge')).toThrow(/"huge".*tiny, small, medium/);
  });
});

describe('a config at the bounds of what can be built', () => {
  const small = {
    ...{ vocabularySize: 11, contextLength: 8, modelDimension: 8, feedForwardDimension: 12 },
    ...{ layers: 2, heads: 2 },
  };

  it.each<Partial<ModelConfig>>([
    { slidingWindow: 3, fullAttentionLayers: [0, 1] },
    { fullAttentionLayers: [] },
    { positions: 'learned', headDimension: 3 },
    { modelDimension: 7, headDimension: 4 },
    { normEpsilon: 0 },
  ])('takes %o', (changes) => {
    expect(() => countParameters({ ...small, ...changes })).not.toThrow();
  });

  it.each<Partial<ModelConfig>>([
    { slidingWindow: 3, fullAttentionLayers: [-1] },
    { slidingWindow: 3, fullAttentionLayers: [2] },
    { slidingWindow: 3, fullAttentionLayers: [1, 1] },
    { headDimension: 3 },
    { modelDimension: 7 },
    { normEpsilon: -1e-9 },
  ])('refuses %o', (changes) => {
    expect(() => countParameters({ ...small, ...changes })).toThrow(ModelConfigError);
  });
});
