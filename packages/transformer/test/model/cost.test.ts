import { device, keep, scope } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { TransformerLM, costOf, languageModelLoss, presets } from '../../src/index.ts';
import { idsOf } from '../toy-model.ts';

describe('costOf', () => {
  it('counts the products of a small model', () => {
    const { forwardFlops, backwardFlops, stepFlops } = costOf(presets.small, { batch: 4 });
    const perLayer = 4 * 768 ** 2 + 3 * 768 * 3072;
    const products = 2 * 4 * 256 * (12 * perLayer + 10_000 * 768);
    expect(forwardFlops).toBe(products + 12 * 4 * 4 * 256 ** 2 * 768);
    expect([backwardFlops, stepFlops]).toEqual([2 * forwardFlops, 3 * forwardFlops]);
  });

  it('counts the scores of heads that are not as wide together as the model', () => {
    const [usual, wide] = [64, 96].map((headDimension) =>
      costOf({ ...presets.small, headDimension }, { batch: 4, context: 100 }),
    );
    // Four products' weights grow by half, and so does attention.
    const weights = 2 * 4 * 100 * 12 * 4 * 768 * (12 * 32);
    const scores = 4 * 4 * 100 ** 2 * 12 * (12 * 32);
    expect(wide!.forwardFlops - usual!.forwardFlops).toBe(weights + scores);
  });

  it('counts the product with tied embeddings, and their bytes once', () => {
    const [tied, untied] = [true, false].map((tieWordEmbeddings) =>
      costOf({ ...presets.tiny, tieWordEmbeddings }, { batch: 4 }),
    );
    expect(tied!.stepFlops).toBe(untied!.stepFlops);
    expect(untied!.parameterBytes - tied!.parameterBytes).toBe(4 * 10_000 * 128);
  });

  it('counts bytes by dtype, and moments in float32', () => {
    const { parameterBytes, gradientBytes, optimizerBytes } = costOf(presets.small, {
      batch: 1,
      dtype: 'bfloat16',
    });
    expect(parameterBytes / 1e6).toBeCloseTo(2 * 128.625408, 3);
    expect(gradientBytes).toBe(parameterBytes);
    expect(optimizerBytes).toBe(4 * parameterBytes);
  });

  it("counts a context shorter than the model's as that of a model with this context", () => {
    const config = { ...presets.tiny, contextLength: 64 };
    for (const context of [1, 7, 63, 64, 65]) {
      const asOwn = costOf({ ...config, contextLength: context }, { batch: 3 });
      expect(costOf(config, { batch: 3, context })).toEqual(asOwn);
    }
  });

  it.each([64, 23])('knows what the forward pass of %i tokens keeps', (context) => {
    const config = { ...presets.tiny, contextLength: 64, layers: 3, heads: 8, vocabularySize: 500 };
    const model = new TransformerLM(config);
    const rows = [0, 1].map((row) => Array.from({ length: context }, (_, i) => (7 * i + row) % 500));
    const [ids, targets] = [idsOf(rows), idsOf(rows)];
    scope(() => languageModelLoss(model, ids, targets));
    const allocated = () => device('cpu').memoryStatistics().allocatedBytes;
    const before = allocated();
    const loss = keep(scope(() => languageModelLoss(model, ids, targets)));
    const kept = allocated() - before;
    loss.dispose();
    expect(allocated()).toBe(before);
    const { activationBytes } = costOf(config, { batch: 2, context });
    expect(kept / activationBytes).toBeGreaterThan(0.99);
    expect(kept / activationBytes).toBeLessThan(1.02);
  });
});
