import { device as openDevice, noGrad, ones, tensor, zeros } from '@roofline/tensor-core';
import type { HostileTable } from '../../../tooling/hostile-arguments.ts';
import * as transformer from '../src/index.ts';

const heads = () => ones([1, 2, 3, 2]);
const head = () => ones([1, 2, 1, 2]);
const slot = () => zeros([8, 1, 1, 1], { dtype: 'bool' });
const position = () => tensor([1], { dtype: 'int32' });
const cache = () => new transformer.KeyValueCache(8);
const generateOptions = () => ({
  ...{ maxNewTokens: 1, stopToken: 0, seed: 0, useCache: true, windowStride: 1, compile: false },
  ...{ temperature: 1, topK: 1, topP: 1 },
});
const samplingLegal = (at: number) => ({
  [`${at}`]: 'undefined {}',
  [`${at}.temperature`]: 'undefined 5 Infinity',
  [`${at}.topK`]: 'undefined 5',
  [`${at}.topP`]: 'undefined',
});
const generateLegal = {
  ...samplingLegal(2),
  '2.maxNewTokens': 'undefined 5 Infinity',
  '2.stopToken': 'undefined []',
  '2.seed': 'undefined 5',
  '2.useCache': 'undefined',
  '2.windowStride': 'undefined 5',
  '2.compile': 'undefined',
};
const batchOptions = () => {
  const { useCache: _, windowStride: __, ...options } = generateOptions();
  return options;
};
const batchLegal = (() => {
  const { '2.useCache': _, '2.windowStride': __, ...legal } = generateLegal;
  return { ...legal, '2.maxNewTokens': 'undefined 5' };
})();

/** How what generates is called with what it does not take. */
export function generationTable({ model }: { model: () => transformer.TransformerLM }): HostileTable {
  return {
    'new KeyValueCache': {
      args: () => [8, { padding: [1, 0] }],
      legal: { 0: '5', 1: 'undefined {}', '1.padding': 'undefined', '1.padding.0': '5', '1.padding.1': '5' },
    },
    'KeyValueCache#startsOn': { args: () => [cache(), openDevice('cpu')] },
    'KeyValueCache#checkBegun': { args: () => [cache()] },
    'KeyValueCache#layer': { args: () => [cache(), 0], legal: { 1: '5' } },
    'KeyValueCache#advance': { args: () => [cache(), 1], legal: { 1: '5' } },
    'KeyValueCache#checkRoom': { args: () => [cache(), 1], legal: { 1: '5' } },
    'KeyValueCache#clear': { args: () => [cache()] },
    'KeyValueCache#dispose': { args: () => [cache()] },
    'new LayerCache': { args: () => [cache()] },
    'LayerCache#append': { args: () => [cache().layer(0), heads(), heads()] },
    'LayerCache#write': {
      args: () => {
        const layer = cache().layer(0);
        noGrad(() => layer.append(heads(), heads()));
        return [layer, slot(), head(), head()];
      },
    },
    'LayerCache#clear': { args: () => [cache().layer(0)] },
    'new CacheStep': { args: () => [cache(), position()] },
    'CacheStep#layer': {
      args: () => [new transformer.CacheStep(cache(), position()), 0],
      legal: { 1: '5' },
      named: 'KeyValueCache.layer',
    },
    'CacheStep#startsOn': {
      args: () => [new transformer.CacheStep(cache(), position()), openDevice('cpu')],
      named: 'KeyValueCache.startsOn',
    },
    'LayerCache#dispose': { args: () => [cache().layer(0)] },
    generate: { args: () => [model(), [0, 1], generateOptions()], legal: generateLegal },
    generateTokens: { args: () => [model(), [0, 1], generateOptions()], legal: generateLegal },
    generateBatch: {
      args: () => [model(), [[0, 1], [2]], batchOptions()],
      legal: batchLegal,
    },
    sampleToken: {
      args: () => [[0, 1], { temperature: 1, topK: 1, topP: 1 }, () => 0.5],
      legal: { ...samplingLegal(1), 1: '{}', 2: 'fn' },
    },
  };
}
