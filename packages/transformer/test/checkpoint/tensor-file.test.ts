import { type Tensor, observeOps, ones, tensor } from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { loadTensors, saveTensors } from '../../src/index.ts';
import { temporaryFolder } from './temporary-folder.ts';

const path = temporaryFolder();

it('observers are notified of what a file writes', () => {
  const file = path('observed.safetensors');
  const [matrix, bools] = [tensor([[1, 2], [3, 4]]), tensor([1, 0], { dtype: 'bool' })]; // prettier-ignore
  saveTensors({ tensors: { matrix, bools, empty: ones([0, 3]) }, metadata: {} }, file);
  const written: Tensor[] = [];
  const stop = observeOps({ hostWrite: (target) => written.push(target) });
  try {
    const { tensors } = loadTensors(file);
    expect(written).toEqual([tensors.matrix, tensors.bools, tensors.empty]);
    expect(tensors.matrix!.toArray()).toEqual([[1, 2], [3, 4]]); // prettier-ignore
    expect(tensors.bools!.toArray()).toEqual([1, 0]);
    expect(tensors.empty!.shape).toEqual([0, 3]);
  } finally {
    stop();
  }
});
