import { device, keep, scope, tensor, zeros } from '@roofline/tensor-core';
import { describe, expect, it, vi } from 'vitest';
import {
  SafetensorsFile,
  StateError,
  TransformerLM,
  loadCheckpoint,
  loadTensors,
  saveCheckpoint,
  saveTensors,
} from '../../src/index.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { idsOf, toyConfig, toyModel } from '../toy-model.ts';

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

  it('of values beyond the dtype of the model are refused, by the name of the first, before anything is written', () => {
    const model = toyModel();
    const before = [...model.parameters()].map((parameter) => parameter.toFlatArray());
    const tensors = toyModel({ seed: 9 }).stateDict();
    tensors['ln_final.weight'] = tensor([1, 2, 3, 4, 5, 6, 7, -1e39], { dtype: 'float64' });
    saveTensors({ tensors, metadata: {} }, path('wide'));
    expect(() => loadCheckpoint(model, path('wide'))).toThrow(
      'loading "ln_final.weight": it holds -1e+39 in float64, which is beyond float32',
    );
    expect([...model.parameters()].map((parameter) => parameter.toFlatArray())).toEqual(before);
  });

  it('that do not fit are refused before anything is written', () => {
    const model = toyModel();
    const before = model.tokenEmbeddings.weight.toFlatArray();
    const { 'ln_final.weight': norm, ...others } = toyModel({ seed: 9 }).stateDict();
    saveTensors({ tensors: { ...others, 'ln_last.weight': norm! }, metadata: {} }, path('renamed'));
    const load = () => loadCheckpoint(model, path('renamed'));
    expect(load).toThrow(/missing \(1\): ln_final.weight\n {2}unexpected \(1\): ln_last.weight/);
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

  it('of integers are refused', () => {
    const state = { ...toyModel().stateDict(), 'ln_final.weight': zeros([8], { dtype: 'int64' }) };
    saveTensors({ tensors: state, metadata: {} }, path('integers'));
    expect(() => loadCheckpoint(toyModel(), path('integers'))).toThrow(
      /ln_final.weight is int64, the model's float32/,
    );
  });

  it('that cannot be read to the end leave the model and its memory as they were', () => {
    const model = toyModel({ seed: 1 });
    saveCheckpoint(toyModel({ seed: 2 }), path('unreadable'));
    const values = () => [...model.parameters()].map((parameter) => parameter.toFlatArray());
    const before = values();
    const live = device('cpu').memoryStatistics().liveStorages;
    const read = SafetensorsFile.prototype.read;
    let reads = 0;
    vi.spyOn(SafetensorsFile.prototype, 'read').mockImplementation(function (this: SafetensorsFile, name) {
      if (++reads === 5) throw new Error('the disk is gone');
      return read.call(this, name);
    });
    expect(() => loadCheckpoint(model, path('unreadable'))).toThrow('the disk is gone');
    reads = 0;
    expect(() => loadTensors(path('unreadable'))).toThrow('the disk is gone');
    vi.restoreAllMocks();
    expect(values()).toEqual(before);
    expect(device('cpu').memoryStatistics().liveStorages).toBe(live);
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

describe('checkpoints of tied weights', () => {
  const tiedConfig = { ...toyConfig, tieWordEmbeddings: true };
  const tied = (seed: number) => new TransformerLM(tiedConfig, { seed });
  const weights = (model: TransformerLM) => [model.tokenEmbeddings.weight, model.lmHead.weight];

  it('hold them once, and say what other name they have', () => {
    const [saved, loaded] = [tied(1), tied(2)];
    saveCheckpoint(saved, path('tied'), { step: '7' });
    using file = new SafetensorsFile(path('tied'));
    expect([...file.tensors.keys()]).toEqual([...saved.namedParameters()].map(([name]) => name));
    expect(file.tensors.has('lm_head.weight')).toBe(false);
    expect(file.metadata).toEqual({ format: 'pt', step: '7', 'lm_head.weight': 'token_embeddings.weight' });
    expect(loadCheckpoint(loaded, path('tied'))).toMatchObject({ missing: [], unexpected: [] });
    expect(loaded.lmHead.weight).toBe(loaded.tokenEmbeddings.weight);
    expect(loaded.forward(ids).toFlatArray()).toEqual(saved.forward(ids).toFlatArray());
  });

  it('load into a model that does not tie them, which then has two', () => {
    saveCheckpoint(tied(1), path('tied'));
    const model = toyModel({ seed: 2 });
    loadCheckpoint(model, path('tied'));
    const [embeddings, head] = weights(model);
    expect(head).not.toBe(embeddings);
    expect(head!.toFlatArray()).toEqual(embeddings!.toFlatArray());
    expect(embeddings!.toFlatArray()).toEqual(weights(tied(1))[0]!.toFlatArray());
  });

  it('load from files under either name, or both if they agree', () => {
    const source = tied(1);
    const { 'token_embeddings.weight': embeddings, 'lm_head.weight': head, ...rest } = source.stateDict();
    const files = {
      embeddings: { ...rest, 'token_embeddings.weight': embeddings! },
      head: { ...rest, 'lm_head.weight': head! },
      both: source.stateDict(),
    };
    for (const [name, tensors] of Object.entries(files)) {
      saveTensors({ tensors, metadata: {} }, path(name));
      const model = tied(2);
      loadCheckpoint(model, path(name));
      expect(model.forward(ids).toFlatArray()).toEqual(source.forward(ids).toFlatArray());
    }
    const model = tied(2);
    const before = model.lnFinal.weight.toFlatArray();
    saveCheckpoint(toyModel({ seed: 3 }), path('untied'));
    expect(() => loadCheckpoint(model, path('untied'))).toThrow(
      /token_embeddings.weight and lm_head.weight differ, and are one parameter/,
    );
    expect(model.lnFinal.weight.toFlatArray()).toEqual(before);
    expect(() => loadCheckpoint(toyModel(), path('embeddings'))).toThrow(/missing \(1\): lm_head.weight/);
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
