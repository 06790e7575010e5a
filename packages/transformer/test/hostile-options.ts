import { Generator } from '@roofline/tensor-core';
import * as transformer from '../src/index.ts';

export const config = (): transformer.ModelConfig => ({
  vocabularySize: 5,
  contextLength: 8,
  modelDimension: 4,
  feedForwardDimension: 4,
  layers: 1,
  heads: 2,
  ...more,
});
/** What a config may leave out. */
export const more: Partial<transformer.ModelConfig> = {
  ...{ ropeTheta: 10, normEpsilon: 1e-5, tieWordEmbeddings: false, keyValueHeads: 2, headDimension: 2 },
  ...{ attentionBias: 'none', queryKeyNorm: false, feedForward: 'swiglu', feedForwardBias: false },
  ...{ norm: 'rms', positions: 'rotary' },
  ropeScaling: { type: 'linear', factor: 2 },
};
export const sizes = Object.keys(config()).filter((name) => !Object.hasOwn(more, name));

/** What a config takes all the same, of those of `config()` with one size 5. */
export const configLegal = (at: number) => ({
  ...Object.fromEntries(
    sizes.filter((name) => !['modelDimension', 'heads'].includes(name)).map((name) => [`${at}.${name}`, '5']),
  ),
  ...moreLegal(at),
  [`${at}.modelDimension`]: '5',
});
export const moreLegal = (at: number) => ({
  ...Object.fromEntries(Object.keys(more).map((name) => [`${at}.${name}`, 'undefined'])),
  [`${at}.ropeTheta`]: 'undefined 5',
  [`${at}.normEpsilon`]: 'undefined 5',
});
export const parameterOptions = () =>
  ({ device: 'cpu', dtype: 'float32', generator: new Generator(0) }) as const;
export const parameterLegal = (at: number) => ({
  [`${at}.device`]: 'undefined',
  [`${at}.dtype`]: 'undefined',
  [`${at}.generator`]: 'undefined',
});
/** Where nothing but these options is asked for. */
export const optionsLegal = (at: number) => ({ [at]: 'undefined {}', ...parameterLegal(at) });
export const positions = () => new transformer.RotaryEmbedding({ headDimension: 2, contextLength: 8 });
export const attentionOptions = () => ({
  ...parameterOptions(),
  modelDimension: 4,
  heads: 2,
  positions: positions(),
  attention: transformer.plainAttention,
  ...({ keyValueHeads: 2, headDimension: 2, bias: 'none', queryKeyNormEpsilon: 1e-5 } as const),
});
export const attentionLegal = {
  ...parameterLegal(0),
  '0.attention': 'undefined fn',
  '0.positions': 'null',
  '0.keyValueHeads': 'undefined',
  '0.headDimension': 'undefined 5',
  '0.bias': 'undefined',
  '0.queryKeyNormEpsilon': 'undefined null 5',
  '0.modelDimension': '5',
};
export const blockOptions = (): transformer.BlockOptions => ({
  ...attentionOptions(),
  ...{
    feedForwardDimension: 3,
    feedForward: 'swiglu',
    feedForwardBias: false,
    norm: 'rms',
    normEpsilon: 1e-5,
  },
});
