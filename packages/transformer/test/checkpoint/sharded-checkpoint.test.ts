import { type Tensor, full, mul } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { TransformerLM, loadSharded, saveTensors } from '../../src/index.ts';
import { shardedOf } from '../hostile-sharded.ts';
import { toyConfig } from '../toy-model.ts';
import { temporaryFolder } from './temporary-folder.ts';

const path = temporaryFolder();

describe('a file of whole tensors that a sharded model loads', () => {
  const name = 'layers.0.attn.k_proj.weight';
  const fileWith = (file: string, change: (name: string, dtype: 'float64') => Record<string, Tensor>) => {
    const tensors = new TransformerLM(toyConfig, { seed: 1 }).stateDict();
    saveTensors({ tensors: { ...tensors, ...change(name, 'float64') }, metadata: {} }, path(file));
    return path(file);
  };

  it('is refused where it holds whole numbers, before anything is written', async () => {
    const model = new TransformerLM(toyConfig, { seed: 0 });
    const [sharded, before] = [shardedOf(model), model.tokenEmbeddings.weight.toFlatArray()];
    const { shape } = model.layers[0]!.attn.kProj.weight;
    const file = fileWith('integers.safetensors', () => ({ [name]: full(shape, 3, { dtype: 'int32' }) }));
    await expect(loadSharded(sharded, file)).rejects.toThrow(
      `does not fit the model: "${name}" is int32, the model's float32`,
    );
    expect(model.tokenEmbeddings.weight.toFlatArray()).toEqual(before);
  });

  it('is read where its numbers are float64, and refused where one is beyond float32', async () => {
    const model = new TransformerLM(toyConfig, { seed: 0 });
    const { weight } = model.layers[0]!.attn.kProj;
    const fine = fileWith('fine.safetensors', (_, dtype) => ({ [name]: full(weight.shape, 0.5, { dtype }) }));
    await loadSharded(shardedOf(model), fine);
    expect(new Set(weight.toFlatArray())).toEqual(new Set([0.5]));
    const beyond = fileWith('beyond.safetensors', (_, dtype) => ({
      [name]: mul(full(weight.shape, 1e200, { dtype }), 2),
    }));
    await expect(loadSharded(shardedOf(model), beyond)).rejects.toThrow(
      `loading "${name}": it holds 2e+200 in float64, which is beyond float32`,
    );
    expect(new Set(weight.toFlatArray())).toEqual(new Set([0.5]));
  });
});
