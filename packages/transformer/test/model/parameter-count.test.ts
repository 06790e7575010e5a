import { describe, expect, it } from 'vitest';
import {
  ModelConfigError,
  type PresetName,
  TransformerLM,
  countParameters,
  countParametersByModule,
  parameterShapes,
  presets,
} from '../../src/index.ts';
import { toyConfig, toyModel } from '../toy-model.ts';

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

  it('counts any number of layers at once, or refuses', () => {
    const layers = 1e9;
    const one = countParametersByModule({ ...toyConfig, layers: 1 });
    const many = countParametersByModule({ ...toyConfig, layers });
    expect(many.feedForward).toBe(one.feedForward * layers);
    expect(many.total - one.total).toBe(
      (layers - 1) * (one.feedForward + one.attention + 2 * toyConfig.modelDimension),
    );
    const endless = { ...toyConfig, layers: Number.MAX_SAFE_INTEGER };
    expect(() => countParameters(endless)).toThrow(ModelConfigError);
    expect(() => countParameters(endless)).toThrow(/more than can be counted; take smaller sizes/);
  });

  it('counts what a model has, part by part', () => {
    const model = toyModel();
    const built = [...model.namedParameters()].map(([name, { shape }]) => [name, shape]);
    expect([...parameterShapes(toyConfig)]).toEqual(built);
    const { total, ...parts } = countParametersByModule(toyConfig);
    expect(total).toBe([...model.parameters()].reduce((sum, { size }) => sum + size, 0));
    expect(Object.values(parts).reduce((a, b) => a + b)).toBe(total);
    expect(parts).toEqual({
      ...{
        tokenEmbeddings: 88,
        positionEmbeddings: 0,
        attention: 512,
        feedForward: 576,
        norms: 40,
        head: 88,
      },
    });
  });
});
