import { readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { RooflineError, type Tensor, noGrad, ones, tensor } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type HostileTable, describeHostileArguments, exempt } from '../../../tooling/hostile-arguments.ts';
import * as transformer from '../src/index.ts';
import {
  config,
  sizes,
  configLegal,
  moreLegal,
  parameterOptions,
  parameterLegal,
  optionsLegal,
  positions,
  attentionOptions,
  attentionLegal,
  blockOptions,
} from './hostile-options.ts';
import { generationTable } from './hostile-generation.ts';
import { shardedTable } from './hostile-sharded.ts';
import { trainingTable } from './hostile-training.ts';

const model = () => new transformer.TransformerLM(config());
const linear = () => new transformer.Linear(2, 2, parameterOptions());
const heads = () => ones([1, 2, 3, 2]);
const ids = () => tensor([[0, 1]], { dtype: 'int32' });
const cache = () => new transformer.KeyValueCache(8);

const path = join(import.meta.dirname, `hostile-arguments.${process.pid}.safetensors`);
const file = () => {
  transformer.saveTensors({ tensors: { a: ones([2]) }, metadata: {} }, path);
  return path;
};
const checkpointFile = () => {
  transformer.saveCheckpoint(model(), path);
  return path;
};
const source = () => transformer.byteTokens('a longer text');
const loaderOptions = () => ({
  ...({ batch: 2, contextLength: 2, seed: 0, split: 'train', validationShare: 0.2 } as const),
  ...({ rank: 0, ranks: 1, device: 'cpu' } as const),
});
const loader = () => new transformer.TokenLoader(source(), loaderOptions());
const tokenFile = () => {
  transformer.writeTokens(path, [[1, 2, 3, 0, 1, 2, 3, 0]], { vocabularySize: 4 });
  return path;
};
const tokenWriter = () => {
  const writer = new transformer.TokenFileWriter(path, { vocabularySize: 4, job: 'a' });
  writer.append([1]);
  return writer;
};
/** A file or folder of the name 'a', which a hostile path would write. */
const undo = () => {
  for (const written of [path, 'a']) {
    rmSync(written, { force: true, recursive: true });
    // Those of writers that were not disposed.
    for (const name of readdirSync(dirname(written)))
      if (name.startsWith(`${basename(written)}.`) && name.endsWith('.partial'))
        rmSync(join(dirname(written), name));
  }
};
const llama = join(import.meta.dirname, 'pretrained', 'golden', 'llama');
const loadOptions = () =>
  ({
    device: 'cpu',
    dtype: 'float32',
    attention: transformer.plainAttention,
    recompute: 'none',
    contextLength: 8,
  }) as const;
/** Of the file that is not there. */
const missing = 'SafetensorsFile|^a cannot be opened';
const missingTokens = 'TokenFile|^a cannot be opened';
const compute = exempt('protected: forward() calls it');
const error = exempt('an error: its message is whatever it is given');

const table: HostileTable = {
  // Modules
  'new Module': exempt('abstract, and takes nothing'),
  'Module#forward': { args: () => [linear(), ones([2])], named: 'linear' },
  'Module#children': { args: () => [model()] },
  'Module#namedModules': { args: () => [model(), 'model'], legal: { 1: 'undefined a' } },
  'Module#namedParameters': {
    args: () => [model(), 'model', { removeDuplicate: true }],
    legal: { 1: 'undefined a', 2: 'undefined {}', '2.removeDuplicate': 'undefined' },
  },
  'Module#parameters': { args: () => [model()] },
  'Module#train': { args: () => [model(), true], legal: { 1: 'undefined' } },
  'Module#eval': { args: () => [model()] },
  'Module#stateDict': { args: () => [model()] },
  'Module#loadStateDict': {
    args: () => [linear(), linear().stateDict(), { strict: true }],
    legal: { 2: 'undefined {}', '2.strict': 'undefined' },
  },
  'Module#within': exempt('protected: modules run what they calculate by it'),
  'Module#wrap': { args: () => [model(), (run: () => unknown) => run()], legal: { 1: 'fn' } },
  'Module#zeroGrad': { args: () => [model()] },
  'Module#dispose': { args: () => [model()] },
  'new Linear': {
    args: () => [2, 3, { ...parameterOptions(), bias: true }],
    legal: { 0: '5', 1: '5', ...optionsLegal(2), '2.bias': 'undefined' },
  },
  'Linear#compute': compute,
  'new Embedding': {
    args: () => [2, 3, { ...parameterOptions(), std: 1 }],
    legal: { 0: '5', 1: '5', ...optionsLegal(2), '2.std': 'undefined 5' },
  },
  'Embedding#compute': compute,
  'new RMSNorm': {
    args: () => [2, { device: 'cpu', dtype: 'float32' }, 1e-5],
    legal: { 0: '5', ...optionsLegal(1), 2: 'undefined 5' },
  },
  'RMSNorm#compute': compute,
  'new LayerNorm': {
    args: () => [2, { device: 'cpu', dtype: 'float32' }, 1e-5],
    legal: { 0: '5', ...optionsLegal(1), 2: 'undefined 5' },
  },
  'LayerNorm#compute': compute,
  'new PositionEmbedding': {
    args: () => [2, 3, { ...parameterOptions(), std: 1 }],
    legal: { 0: '5', 1: '5', ...optionsLegal(2), '2.std': 'undefined 5' },
    named: 'PositionEmbedding|Embedding',
  },
  'PositionEmbedding#compute': compute,
  'new GeluNetwork': {
    args: () => [2, 3, { ...parameterOptions(), approximate: 'tanh', bias: true }],
    legal: { 0: '5', 1: '5', ...optionsLegal(2), '2.approximate': 'undefined', '2.bias': 'undefined' },
  },
  'GeluNetwork#compute': compute,
  'new SwiGLU': {
    args: () => [2, 3, { ...parameterOptions(), bias: true }],
    legal: { 0: '5', 1: '5', ...optionsLegal(2), '2.bias': 'undefined' },
  },
  'SwiGLU#compute': compute,
  'new CausalSelfAttention': { args: () => [attentionOptions()], legal: attentionLegal },
  'CausalSelfAttention#compute': compute,
  'new TransformerBlock': {
    args: () => [blockOptions()],
    legal: {
      ...attentionLegal,
      '0.feedForwardDimension': '5',
      '0.feedForward': 'undefined',
      '0.feedForwardBias': 'undefined',
      '0.norm': 'undefined',
      '0.normEpsilon': 'undefined 5',
    },
  },
  'TransformerBlock#compute': compute,
  summary: { args: () => [model()] },
  'new TransformerLM': {
    args: () => [
      config(),
      { device: 'cpu', dtype: 'float32', seed: 0, attention: transformer.plainAttention, recompute: 'none' },
    ],
    legal: {
      ...configLegal(0),
      ...parameterLegal(1),
      '1': 'undefined {}',
      '1.seed': 'undefined 5',
      '1.attention': 'undefined fn',
      '1.recompute': 'undefined 5',
    },
  },
  'TransformerLM#features': { args: () => [model(), ids()], named: 'TransformerLM' },
  'TransformerLM#compute': {
    args: () => [model(), ids(), cache()],
    legal: { 2: 'undefined' },
    call: (self: transformer.TransformerLM, tokens: Tensor, given: transformer.KeyValueCache) =>
      noGrad(() => self.forward(tokens, given)),
    named: 'TransformerLM',
  },
  'TransformerLM#dispose': { args: () => [model()] },
  'new RotaryEmbedding': {
    args: () => [
      {
        headDimension: 2,
        contextLength: 3,
        theta: 10,
        scaling: { type: 'linear', factor: 2 },
        device: 'cpu',
      },
    ],
    legal: {
      '0.contextLength': '5',
      '0.theta': 'undefined 5',
      '0.scaling': 'undefined',
      '0.device': 'undefined',
    },
  },
  'RotaryEmbedding#apply': { args: () => [positions(), heads(), 0], legal: { 2: 'undefined 5' } },
  'RotaryEmbedding#dispose': { args: () => [positions()] },
  plainAttention: {
    args: () => [heads(), heads(), heads(), { causal: true, scale: 1 }],
    legal: { '3.scale': '5' },
  },
  languageModelLoss: {
    args: () => [model(), ids(), ids(), { logits: 'chunked' }],
    legal: { 3: 'undefined {}', '3.logits': 'undefined' },
  },

  ...trainingTable({ model, loader, path, missing, undo }),

  ...generationTable({ model }),

  // Configs
  'new ModelConfigError': error,
  presetConfig: {
    args: () => ['tiny', config()],
    legal: {
      1: 'undefined {}',
      ...Object.fromEntries(sizes.map((name) => [`1.${name}`, 'undefined 5'])),
      ...moreLegal(1),
      '1.heads': 'undefined',
    },
  },
  countParameters: { args: () => [config()], legal: configLegal(0) },
  countParametersByModule: { args: () => [config()], legal: configLegal(0) },
  parameterShapes: { args: () => [config()], legal: configLegal(0) },
  costOf: {
    args: () => [config(), { batch: 1, context: 2, dtype: 'float32' }],
    legal: { ...configLegal(0), '1.batch': '5', '1.context': 'undefined 5', '1.dtype': 'undefined' },
  },
  byteWindows: {
    args: () => ['a text', { step: 0, batch: 1, contextLength: 2, seed: 0, device: 'cpu' }],
    legal: {
      '1.step': '5',
      '1.batch': '5',
      '1.contextLength': '5',
      '1.seed': '5 undefined',
      '1.device': 'undefined',
    },
  },
  byteTokens: { args: () => ['a text'], legal: { 0: 'a' } },
  'new TokenLoader': {
    args: () => [source(), loaderOptions()],
    legal: {
      '0.name': 'a',
      '0.fingerprint': 'a',
      // Below the tokens of the text.
      '0.vocabularySize': '',
      '0.length': '5',
      '1.batch': '5',
      '1.contextLength': '5',
      '1.seed': 'undefined 5',
      '1.split': 'undefined',
      '1.validationShare': 'undefined',
      '1.rank': 'undefined',
      '1.ranks': 'undefined',
      '1.device': 'undefined',
    },
  },
  'TokenLoader#next': { args: () => [loader()] },
  'TokenLoader#prefetch': { args: () => [loader()] },
  'TokenLoader#state': { args: () => [loader()] },
  'TokenLoader#load': {
    args: () => [loader(), loader().state()],
    legal: { '1.windows': '5', '1.seed': '', '1.contextLength': '', '1.range': '', '1.fingerprint': '' },
  },
  'TokenLoader#dispose': { args: () => [loader()] },

  // Files
  'new TokenFileError': error,
  'new TokenFile': { args: () => [tokenFile()], named: missingTokens, undo },
  'TokenFile#read': {
    args: () => [new transformer.TokenFile(tokenFile()), 0, 3],
    legal: { 1: '5', 2: '5' },
    named: 'TokenFile.read',
    undo,
  },
  'TokenFile#close': { args: () => [new transformer.TokenFile(tokenFile())], undo },
  isTokenFile: { args: () => [tokenFile()], named: `isTokenFile|${missingTokens}`, undo },
  'new TokenFileWriter': {
    args: () => [path, { vocabularySize: 3, metadata: {}, job: 'a' }],
    legal: { 0: 'a', '1.vocabularySize': '5', '1.metadata': 'undefined {}', '1.job': 'undefined a' },
    named: 'TokenFileWriter',
    undo,
  },
  'TokenFileWriter#append': {
    args: () => [tokenWriter(), [1, 2]],
    legal: { 1: '[]' },
    named: 'TokenFileWriter',
    undo,
  },
  'TokenFileWriter#save': {
    args: () => [tokenWriter(), 1],
    legal: { 1: '5' },
    named: 'TokenFileWriter.save',
    undo,
  },
  'TokenFileWriter#finish': { args: () => [tokenWriter()], undo },
  writeTokens: {
    args: () => [path, [[1, 2]], { vocabularySize: 3, metadata: {} }],
    legal: { 0: 'a', '2.vocabularySize': '5', '2.metadata': 'undefined {}' },
    named: 'writeTokens|TokenFileWriter',
    undo,
  },
  'new SafetensorsError': error,
  'new StateError': error,
  'new PretrainedConfigError': error,
  readPretrainedConfig: {
    args: () => [llama, { contextLength: 8 }],
    legal: { 1: 'undefined {}', '1.contextLength': 'undefined 5' },
    named: 'readPretrainedConfig|^a cannot be read',
  },
  loadPretrained: {
    args: () => [llama, loadOptions()],
    legal: {
      1: 'undefined {}',
      ...Object.fromEntries(Object.keys(loadOptions()).map((name) => [`1.${name}`, 'undefined'])),
      '1.contextLength': 'undefined 5',
      '1.attention': 'undefined fn',
      '1.recompute': 'undefined 5',
    },
    named: 'loadPretrained|TransformerLM|readPretrainedConfig',
  },
  savePretrained: {
    args: () => [transformer.loadPretrained(llama).model, path, { from: llama }],
    legal: { 1: 'a', 2: 'undefined {}', '2.from': 'undefined' },
    named: 'savePretrained|a/config.json cannot be read',
    undo,
  },
  'new SafetensorsFile': { args: () => [file()], named: missing, undo },
  'SafetensorsFile#read': {
    args: () => [new transformer.SafetensorsFile(file()), 'a'],
    legal: { 1: 'a' },
    undo,
  },
  'SafetensorsFile#close': { args: () => [new transformer.SafetensorsFile(file())], undo },
  loadTensors: {
    args: () => [file(), { device: 'cpu' }],
    legal: { 1: 'undefined {}', '1.device': 'undefined' },
    named: `loadTensors|${missing}`,
    undo,
  },
  saveTensors: {
    args: () => [{ tensors: { a: ones([2]) }, metadata: {} }, path],
    legal: { '0.tensors': '{}', '0.metadata': '{}', 1: 'a' },
    undo,
  },
  writeSafetensors: {
    args: () => [
      path,
      [{ name: 'a', dtype: 'float32', shape: [1], read: () => new Uint8Array(4) }],
      { format: 'pt' },
    ],
    legal: { 0: 'a', 1: '[]', 2: 'undefined {}', '2.format': 'a' },
    undo,
  },
  loadCheckpoint: {
    args: () => [model(), checkpointFile(), { strict: true }],
    named: `loadCheckpoint|${missing}`,
    legal: { 2: 'undefined {}', '2.strict': 'undefined' },
    undo,
  },
  'SafetensorsFile#readRange': {
    args: () => [new transformer.SafetensorsFile(file()), 'a', 0, 5],
    legal: { 1: 'a', 2: '', 3: '5' },
    undo,
  },
  ...shardedTable({ model, checkpointFile, path, missing, undo }),
  saveCheckpoint: {
    args: () => [model(), path, { format: 'pt' }],
    legal: { 1: 'a', 2: 'undefined {}', '2.format': 'a' },
    undo,
  },
};

describeHostileArguments(transformer, table, RooflineError);

// What `Module#forward` hands on is theirs to check.
const layers = {
  Linear: linear,
  Embedding: () => new transformer.Embedding(5, 4, parameterOptions()),
  RMSNorm: () => new transformer.RMSNorm(4, {}),
  SwiGLU: () => new transformer.SwiGLU(4, 4, parameterOptions()),
  LayerNorm: () => new transformer.LayerNorm(4, {}),
  GeluNetwork: () => new transformer.GeluNetwork(4, 4, parameterOptions()),
  CausalSelfAttention: () => new transformer.CausalSelfAttention(attentionOptions()),
  TransformerBlock: () => new transformer.TransformerBlock(blockOptions()),
  TransformerLM: model,
};

describe.each(Object.entries(layers))('%s.forward', (_, make) => {
  it.each([undefined, null, 5, 'a', [], {}])('refuses %j', (x) => {
    expect(() => make().forward(x as never)).toThrow(RooflineError);
  });
});

it.each(['CausalSelfAttention', 'TransformerBlock'] as const)(
  '%s.forward refuses what is no cache',
  (name) => {
    for (const given of [null, 5, 'a', {}, cache()]) {
      expect(() => layers[name]().forward(ones([1, 2, 4]), given as never)).toThrow(
        'CausalSelfAttention: the cache must be the part of a layer, as cache.layer(0), not ',
      );
    }
  },
);
