import { device, keep, scope, zeros } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  StateError,
  TransformerLM,
  loadCheckpoint,
  loadTensors,
  saveCheckpoint,
  saveTensors,
} from '../src/index.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { idsOf, toyConfig, toyModel } from './toy-model.ts';

const path = temporaryFolder();
const ids = idsOf([[1, 2, 3]]);

describe('checkpoints', () => {
  it('bring a model back, in place', () => {
    const [saved, loaded] = [toyModel({ seed: 1 }), toyModel({ seed: 2 })];
    const { weight } = loaded.lmHead;
    saveCheckpoint(saved, path('model'), { step: '7' });
    expect(loaded.forward(ids).toFlatArray()).not.toEqual(saved.forward(ids).toFlatArray());
    const { missing, unexpected, metadata } = loadCheckpoint(loaded, path('model'));
    expect({ missing, unexpected }).toEqual({ missing: [], unexpected: [] });
    expect(metadata).toEqual({ format: 'pt', step: '7' });
    expect(loaded.forward(ids).toFlatArray()).toEqual(saved.forward(ids).toFlatArray());
    expect(loaded.lmHead.weight).toBe(weight);
  });

  it('are cast to the dtype of the model', () => {
    saveCheckpoint(toyModel({ seed: 1 }), path('float32'));
    const half = toyModel({ dtype: 'bfloat16', seed: 2 });
    loadCheckpoint(half, path('float32'));
    expect(half.lmHead.weight.toFlatArray()).toEqual(
      toyModel({ seed: 1 }).lmHead.weight.to('bfloat16').toFlatArray(),
    );
  });

  it('that do not fit are refused before anything is written', () => {
    const model = toyModel();
    const before = model.tokenEmbeddings.weight.toFlatArray();
    const { 'ln_final.weight': norm, ...others } = toyModel({ seed: 9 }).stateDict();
    saveTensors({ tensors: { ...others, 'ln_last.weight': norm! }, metadata: {} }, path('renamed'));
    const load = () => loadCheckpoint(model, path('renamed'));
    expect(load).toThrow(/missing: ln_final.weight. unexpected: ln_last.weight/);
    expect(load).toThrow(
      expect.objectContaining({ missing: ['ln_final.weight'], unexpected: ['ln_last.weight'] }),
    );
    expect(model.tokenEmbeddings.weight.toFlatArray()).toEqual(before);
    expect(loadCheckpoint(model, path('renamed'), { strict: false }).missing).toEqual(['ln_final.weight']);
    expect(model.tokenEmbeddings.weight.toFlatArray()).toEqual(
      others['token_embeddings.weight']!.toFlatArray(),
    );
  });

  it('of other shapes are refused even then', () => {
    saveCheckpoint(toyModel(), path('toy'));
    const wide = new TransformerLM({ ...toyConfig, vocabularySize: 12 });
    const load = () => loadCheckpoint(wide, path('toy'), { strict: false });
    expect(load).toThrow(StateError);
    expect(load).toThrow(/lm_head.weight is \[11, 8\], the model's \[12, 8\]/);
  });

  it('leave no tensor behind', () => {
    const model = toyModel();
    saveCheckpoint(model, path('clean'));
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const before = live();
    saveCheckpoint(model, path('clean'));
    loadCheckpoint(model, path('clean'));
    expect(live()).toBe(before);
  });
});

describe('saveTensors and loadTensors', () => {
  it('keep any tensors, and text', () => {
    const tensors = { 'exp_avg.0': keep(scope(() => zeros([2, 0]))), step: idsOf([[5]]) };
    saveTensors({ tensors, metadata: { steps: '[1]' } }, path('state'));
    const loaded = loadTensors(path('state'));
    expect(loaded.metadata).toEqual({ steps: '[1]' });
    expect(loaded.tensors['exp_avg.0']!.shape).toEqual([2, 0]);
    expect(loaded.tensors['step']!.toFlatArray()).toEqual([5]);
  });
});
