import { type Device, type Tensor, device, fromTypedArray, noGrad, scope } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import {
  KeyValueCache,
  TransformerLM,
  type TransformerOptions,
  languageModelLoss,
} from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { flashAttention, tiledAttention } from '../src/index.ts';
import { relativeError } from './attempt.ts';

const config = {
  ...{
    vocabularySize: 17,
    contextLength: 24,
    modelDimension: 32,
    feedForwardDimension: 48,
    layers: 2,
    heads: 2,
  },
};
const ids = (length: number) => BigInt64Array.from({ length }, (_, i) => BigInt((7 * i * i + 3) % 17));

/** The loss and all gradients of a model on one batch. */
function lossAndGradients(attention: TransformerOptions['attention'], where: Device): number[] {
  return scope(() => {
    const model = new TransformerLM(config, { device: where, attention, seed: 4 });
    const batch = (of: BigInt64Array): Tensor => fromTypedArray(of, [2, 20]).to(where);
    const loss = languageModelLoss(model, batch(ids(40)), batch(ids(41).subarray(1)));
    loss.backward();
    const values = [loss, ...Array.from(model.parameters(), ({ grad }) => grad!)].flatMap((x) =>
      x.toFlatArray(),
    );
    model.dispose();
    return values;
  });
}

describe('TransformerLM', () => {
  const plain = lossAndGradients(undefined, device('cpu'));

  it.each([
    ['flashAttention', flashAttention],
    ['tiledAttention', tiledAttention],
  ])('trains alike with %s', (_, attention) => {
    // Some tens of roundings on the way; a wrong mask or scale is off by 0.1 and more.
    expect(relativeError(lossAndGradients(attention, device('cpu')), plain)).toBeLessThan(2 ** -24 * 64);
  });

  it.skipIf(!hostCompilerVersion())('trains alike on the emulated GPU', () => {
    const flash = lossAndGradients(flashAttention, openEmulatedDevice());
    expect(relativeError(flash, plain)).toBeLessThan(2 ** -24 * 64);
  });

  it('refuses a window of fewer keys than there are, and takes one that a single token or a short sequence sees', () => {
    scope(() => {
      const windowed = (attention: TransformerOptions['attention']) =>
        new TransformerLM({ ...config, slidingWindow: 6 }, { attention, seed: 4 });
      const logits = (attention: TransformerOptions['attention'], length: number) =>
        noGrad(() => windowed(attention).forward(fromTypedArray(ids(length), [1, length])));
      for (const attention of [flashAttention, tiledAttention])
        expect(() => logits(attention, 7)).toThrow(/no sliding windows.*--attention plain/);
      expect(
        relativeError(logits(flashAttention, 6).toFlatArray(), logits(undefined, 6).toFlatArray()),
      ).toBeLessThan(2 ** -24 * 64);
      const [flash, plainOnes] = [flashAttention, undefined].map((attention) => {
        const model = windowed(attention);
        using cache = new KeyValueCache(24);
        return Array.from({ length: 12 }, (_, i) =>
          noGrad(() => model.forward(fromTypedArray(ids(12).slice(i, i + 1), [1, 1]), cache)).toFlatArray(),
        ).flat();
      });
      expect(relativeError(flash!, plainOnes!)).toBeLessThan(2 ** -24 * 64);
    });
  });

  it('generates with a cache, where there are more keys than queries', () => {
    scope(() => {
      const model = new TransformerLM(config, { attention: flashAttention, seed: 4 });
      const all = fromTypedArray(ids(9), [1, 9]);
      const whole = noGrad(() => model.forward(all)).toFlatArray();
      const cache = new KeyValueCache(config.contextLength);
      noGrad(() => model.forward(fromTypedArray(ids(8), [1, 8]), cache));
      const last = noGrad(() => model.forward(fromTypedArray(ids(9).slice(8), [1, 1]), cache)).toFlatArray();
      expect(relativeError(last, whole.slice(-17))).toBeLessThan(2 ** -24 * 64);
      cache.dispose();
      model.dispose();
    });
  });
});
