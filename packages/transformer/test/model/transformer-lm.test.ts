import {
  type DeviceBuffer,
  OutOfMemoryError,
  device,
  fromTypedArray,
  noGrad,
  ones,
  scope,
} from '@roofline/tensor-core';
import { AdamW, SGD } from '@roofline/optim';
import { describe, expect, it, vi } from 'vitest';
import { type AttentionFunction, TransformerLM, languageModelLoss, plainAttention } from '../../src/index.ts';
import { idsOf, toyConfig, toyModel } from '../toy-model.ts';

const live = () => device('cpu').memoryStatistics().liveStorages;

describe('TransformerLM', () => {
  it('gives logits for every position, and none sees a later token', () => {
    const model = toyModel();
    const logits = model.forward(idsOf([[1, 2, 3, 4, 5]]));
    expect(logits.shape).toEqual([1, 5, 11]);
    const other = model.forward(idsOf([[1, 2, 3, 9, 5]])).toFlatArray();
    expect(other.slice(0, 33)).toEqual(logits.toFlatArray().slice(0, 33));
    expect(other.slice(33, 44)).not.toEqual(logits.toFlatArray().slice(33, 44));
  });

  it('starts from the same weights with the same seed', () => {
    const [a, b, c] = [toyModel({ seed: 1 }), toyModel({ seed: 1 }), toyModel({ seed: 2 })];
    const weights = (model: typeof a) => model.layers[1]!.ffn.w2.weight.toFlatArray();
    expect(weights(a)).toEqual(weights(b));
    expect(weights(a)).not.toEqual(weights(c));
    expect(a.lnFinal.weight.toFlatArray()).toEqual(Array(8).fill(1));
  });

  it('keeps a config of its own, whatever becomes of the one that it was built from', () => {
    const config = { ...toyConfig };
    const model = new TransformerLM(config);
    Object.assign(config, { contextLength: 1000, vocabularySize: 3 });
    expect(model.config).toEqual(toyConfig);
  });

  it('frees what it has made where the memory runs out on the way', () => {
    // Memory is no part of what users see of a device.
    const cpu = device('cpu') as unknown as { allocate(byteLength: number): DeviceBuffer };
    const allocate = cpu.allocate.bind(cpu);
    let calls = 0;
    const spy = vi.spyOn(cpu, 'allocate').mockImplementation((bytes) => {
      calls++;
      return allocate(bytes);
    });
    try {
      toyModel().dispose();
      const needed = calls;
      for (let last = 1; last <= needed; last++) {
        calls = 0;
        const before = live();
        spy.mockImplementation((bytes) => {
          if (++calls < last) return allocate(bytes);
          throw new OutOfMemoryError({ device: 'cpu', requestedBytes: bytes, heldBytes: 0, freeBytes: 0 });
        });
        expect(() => toyModel()).toThrow(OutOfMemoryError);
        // Less where tensors that other tests dropped were freed for it.
        expect(live()).toBeLessThanOrEqual(before);
      }
      expect(needed).toBeGreaterThan(20);
    } finally {
      spy.mockRestore();
    }
  });

  it('calls the attention function that it is given, on heads', () => {
    const shapes: (readonly number[])[] = [];
    const asked: unknown[] = [];
    const attention: AttentionFunction = (q, k, v, settings) => {
      shapes.push(q.shape, k.shape, v.shape);
      asked.push(settings);
      return plainAttention(q, k, v, settings);
    };
    const ids = idsOf([[1, 2, 3]]);
    expect(toyModel({ attention }).forward(ids).toFlatArray()).toEqual(toyModel().forward(ids).toFlatArray());
    expect(shapes.map(String)).toEqual(Array(6).fill('1,2,3,4'));
    const settings = { causal: true, scale: 0.5 };
    expect(asked).toEqual([settings, settings]);
  });

  it('has plain attention over all keys too', () => {
    scope(() => {
      const x = fromTypedArray(Float32Array.of(0, 1, 2, 3), [1, 1, 4, 1]);
      const [first] = plainAttention(x, x, x, { causal: false, scale: 0 }).toFlatArray();
      expect(first).toBe(1.5);
    });
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

  it('ties its head to its embeddings: one parameter, with the gradients of both uses, trained once', () => {
    const tied = new TransformerLM({ ...toyConfig, tieWordEmbeddings: true }, { seed: 3 });
    const untied = toyModel();
    untied.loadStateDict(tied.stateDict());
    const { weight } = tied.tokenEmbeddings;
    expect(tied.lmHead.weight).toBe(weight);
    expect([...tied.parameters()]).toHaveLength([...untied.parameters()].length - 1);

    const [ids, targets] = [idsOf([[1, 2, 3]]), idsOf([[2, 3, 4]])];
    expect(tied.forward(ids).toFlatArray()).toEqual(untied.forward(ids).toFlatArray());
    const before = weight.toFlatArray();
    for (const model of [tied, untied]) languageModelLoss(model, ids, targets).backward();
    const [head, embeddings] = [
      untied.lmHead.weight.grad!.toFlatArray(),
      untied.tokenEmbeddings.weight.grad!.toFlatArray(),
    ];
    const gradient = weight.grad!.toFlatArray();
    // Two gradients below 1, added up once.
    gradient.forEach((g, i) => expect(Math.abs(g - (head[i]! + embeddings[i]!))).toBeLessThan(2 ** -23));
    expect(head.some((g, i) => g !== gradient[i])).toBe(true);

    new SGD(tied.parameters(), { learningRate: 0.5 }).step();
    weight.toFlatArray().forEach((value, i) => {
      expect(Math.abs(value - (before[i]! - 0.5 * gradient[i]!))).toBeLessThan(2 ** -22);
    });
    tied.zeroGrad();
    expect(weight.grad).toBeNull();
    tied.dispose();
    tied.dispose();
    expect(weight.isDisposed).toBe(true);
  });

  it('says what is wrong with its input', () => {
    const model = toyModel();
    expect(() => model.forward(idsOf([Array(9).fill(1)]))).toThrow(
      /9 tokens is longer than the context of 8/,
    );
    expect(() => model.forward(fromTypedArray(Int32Array.of(1), [1]))).toThrow(
      /ids must be \[batch, tokens\], got \[1\]/,
    );
    expect(() => model.layers[0]!.attn.forward(ones([2, 8]))).toThrow(
      /CausalSelfAttention: x must be \[batch, tokens, d\], not \[2, 8\]/,
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
