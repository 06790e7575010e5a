import { describe, expect, it } from 'vitest';
import {
  type PresetName,
  TransformerLM,
  countParameters,
  countParametersByModule,
  parameterShapes,
  presets,
} from '../src/index.ts';
import { toyConfig, toyModel } from './toy-model.ts';

describe('countParameters', () => {
  it.each<[PresetName, number]>([
    ['small', 128.625],
    ['medium', 423.183],
    ['large', 969.412],
    ['xl', 1998.235],
    ['2.35b', 2357.814],
  ])('%s has %f million', (name, millions) => {
    expect((countParameters(presets[name]) / 1e6).toFixed(3)).toBe(millions.toFixed(3));
  });

  it('counts tied weights once', () => {
    const config = { ...toyConfig, tieWordEmbeddings: true };
    const model = new TransformerLM(config);
    const built = [...model.namedParameters()].map(([name, { shape }]) => [name, shape]);
    expect([...parameterShapes(config)]).toEqual(built);
    const { head, tokenEmbeddings, total } = countParametersByModule(config);
    expect({ head, tokenEmbeddings, total }).toEqual({
      head: 0,
      tokenEmbeddings: 88,
      total: countParameters(toyConfig) - 88,
    });
  });

  it('counts what a model has, part by part', () => {
    const model = toyModel();
    const built = [...model.namedParameters()].map(([name, { shape }]) => [name, shape]);
    expect([...parameterShapes(toyConfig)]).toEqual(built);
    const { total, ...parts } = countParametersByModule(toyConfig);
    expect(total).toBe([...model.parameters()].reduce((sum, { size }) => sum + size, 0));
    expect(Object.values(parts).reduce((a, b) => a + b)).toBe(total);
    expect(parts).toEqual({ tokenEmbeddings: 88, attention: 512, feedForward: 576, norms: 40, head: 88 });
  });
});
