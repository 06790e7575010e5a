import { type Tensor, device, fromTypedArray, noGrad, scope } from '@roofline/tensor-core';
import { AdamW } from '@roofline/optim';
import { describe, expect, it } from 'vitest';
import { languageModelLoss, plainAttention } from '../src/index.ts';
import { idsOf, toyConfig, toyModel } from './toy-model.ts';

const live = () => device('cpu').memoryStatistics().liveStorages;

describe('TransformerLM', () => {
  it('gives logits for every position, none of which sees a later token', () => {
    const model = toyModel();
    const logits = model.forward(idsOf([[1, 2, 3, 4, 5]]));
    expect(logits.shape).toEqual([1, 5, 11]);
    const other = model.forward(idsOf([[1, 2, 3, 9, 5]])).toFlatArray();
    expect(other.slice(0, 33)).toEqual(logits.toFlatArray().slice(0, 33));
    expect(other.slice(33, 44)).not.toEqual(logits.toFlatArray().slice(33, 44));
  });

  it('starts from the same weights with the same seed, spread as they should', () => {
    const [a, b, c] = [toyModel({ seed: 1 }), toyModel({ seed: 1 }), toyModel({ seed: 2 })];
    const weights = (model: typeof a) => model.layers[1]!.ffn.w2.weight.toFlatArray();
    expect(weights(a)).toEqual(weights(b));
    expect(weights(a)).not.toEqual(weights(c));
    const std = Math.sqrt(2 / (8 + 12));
    expect(Math.max(...weights(a).map(Math.abs))).toBeLessThanOrEqual(3 * std);
    const variance = weights(a).reduce((sum, x) => sum + x * x, 0) / 96;
    expect(Math.sqrt(variance) / std).toBeGreaterThan(0.75);
    expect(Math.sqrt(variance) / std).toBeLessThan(1.2);
    expect(a.lnFinal.weight.toFlatArray()).toEqual(Array(8).fill(1));
  });

  it('calls the attention function that it is given, on heads', () => {
    const shapes: (readonly number[])[] = [];
    const attention = (q: Tensor, k: Tensor, v: Tensor) => {
      shapes.push(q.shape, k.shape, v.shape);
      return plainAttention(q, k, v);
    };
    const ids = idsOf([[1, 2, 3]]);
    expect(toyModel({ attention }).forward(ids).toFlatArray()).toEqual(toyModel().forward(ids).toFlatArray());
    expect(shapes.map(String)).toEqual(Array(6).fill('1,2,3,4'));
  });

  it('keeps no storage from step to step, and none when disposed', () => {
    const before = live();
    const model = toyModel();
    const optimizer = new AdamW(model.parameters());
    const [ids, targets] = [idsOf([[1, 2, 3]]), idsOf([[2, 3, 4]])];
    const step = () => {
      scope(() => languageModelLoss(model, ids, targets).backward());
      optimizer.step();
      optimizer.zeroGrad();
    };
    step();
    const afterOne = live();
    for (let i = 0; i < 20; i++) step();
    noGrad(() => model.forward(ids)).dispose();
    expect(live()).toBe(afterOne);
    for (const owner of [model, optimizer, ids, targets]) owner.dispose();
    expect(live()).toBe(before);
  });

  it('frees each layer before the next without a tape', () => {
    const model = toyModel();
    const ids = idsOf([[1, 2, 3]]);
    const cpu = device('cpu');
    const peak = (layers: number) => {
      const deep =
        layers === 2 ? model : Object.assign(toyModel(), { layers: Array(layers).fill(model.layers[0]) });
      noGrad(() => deep.forward(ids)).dispose();
      cpu.resetPeakMemory();
      const { allocatedBytes } = cpu.memoryStatistics();
      noGrad(() => deep.forward(ids)).dispose();
      return cpu.memoryStatistics().peakAllocatedBytes - allocatedBytes;
    };
    expect(peak(30)).toBe(peak(2));
  });

  it('says what is wrong with its input', () => {
    const model = toyModel();
    expect(() => model.forward(idsOf([Array(9).fill(1)]))).toThrow(
      /9 tokens is longer than the context of 8/,
    );
    expect(() => model.forward(fromTypedArray(Int32Array.of(1), [1]))).toThrow(
      /ids must be \[batch, tokens\], got \[1\]/,
    );
    expect(() => languageModelLoss(model, idsOf([[1, 2]]), idsOf([[1]]))).toThrow(
      /\[1, 2\] and targets \[1, 1\]/,
    );
  });

  it('starts with the loss of a guess', () => {
    const loss = languageModelLoss(toyModel(), idsOf([[1, 2, 3, 4]]), idsOf([[2, 3, 4, 5]])).item();
    expect(loss).toBeGreaterThan(1);
    expect(loss).toBeLessThan(2.5 * Math.log(toyConfig.vocabularySize));
  });
});
