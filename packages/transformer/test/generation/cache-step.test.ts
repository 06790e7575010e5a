import {
  type DType,
  type Device,
  compile,
  copyInPlace,
  device,
  fillInPlace,
  noGrad,
  scope,
  select,
  tensor,
  toDevice,
  view,
  zeros,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { CacheStep, KeyValueCache, generate, generateTokens } from '../../src/index.ts';
import { idsOf, toyConfig, toyModel } from '../toy-model.ts';

const rows = [
  [1, 2, 3, 4, 5, 6, 7, 8],
  [9, 3, 5, 7, 0, 2, 4, 10],
];
const columns = (from: number, to = from + 1) => rows.map((row) => row.slice(from, to));

/** Logits of the tokens from the third on, one by one: as eager steps of the cache give them, and as a program does. */
function bothWays(place: Device, dtype: DType = 'float32', given: 'int32' | 'int64' = 'int32') {
  const model = toyModel({ device: place, dtype });
  const ids = (from: number, to?: number) => toDevice(idsOf(columns(from, to)), place);
  using eager = new KeyValueCache(8);
  using stepped = new KeyValueCache(8);
  const step = compile((token: ReturnType<typeof ids>, position: ReturnType<typeof ids>) =>
    model.forward(token, new CacheStep(stepped, position)),
  );
  return noGrad(() =>
    scope(() => {
      for (const cache of [eager, stepped]) model.forward(ids(0, 2), cache);
      const pairs = [2, 3, 4, 5, 6, 7].map((at) => {
        const position = toDevice(tensor([stepped.length], { dtype: given }), place);
        const expected = model.forward(ids(at), eager).toFlatArray();
        const got = step(ids(at), position).toFlatArray();
        stepped.advance(1);
        return { expected, got };
      });
      const { hits, size } = step.cache;
      step.dispose();
      return { pairs, hits, size };
    }),
  );
}

function largestDifference(pairs: readonly { expected: number[]; got: number[] }[]): number {
  return Math.max(...pairs.flatMap(({ expected, got }) => expected.map((x, i) => Math.abs(x - got[i]!))));
}

describe('CacheStep', () => {
  it.each(['int32', 'int64'] as const)('serves all positions, %s, with one program', (given) => {
    const { pairs, hits, size } = bothWays(device('cpu'), 'float32', given);
    // Sums of at most 12 products of numbers below 4, in another order in other shapes.
    expect(largestDifference(pairs)).toBeLessThan(48 * 2 ** -24 * 12);
    expect({ hits, size }).toEqual({ hits: 5, size: 1 });
  });

  it('keeps the dtype of the model', () => {
    expect(largestDifference(bothWays(device('cpu'), 'float64').pairs)).toBeLessThan(48 * 2 ** -53 * 12);
  });

  it('leaves out what lies after the position, even if it was NaN before the cache was cleared', () => {
    const model = toyModel();
    using cache = new KeyValueCache(8);
    const next = (token: number) => {
      const step = new CacheStep(cache, tensor([cache.length], { dtype: 'int32' }));
      return noGrad(() => model.forward(idsOf([[token]]), step)).toFlatArray();
    };
    const run = (): number[] => {
      noGrad(() => model.forward(idsOf([[1, 2]]), cache));
      return next(3);
    };
    const expected = run();
    cache.clear();
    const { weight } = model.layers[0]!.attn.vProj;
    const kept = weight.toFlatArray();
    noGrad(() => fillInPlace(weight, NaN));
    noGrad(() => model.forward(idsOf([[1, 2, 3, 4, 5, 6, 7]]), cache));
    expect(next(8).every(Number.isNaN)).toBe(true);
    noGrad(() => copyInPlace(weight, view(tensor(kept), weight.shape)));
    cache.clear();
    expect(run()).toEqual(expected);
  });

  it('leaves out what was no number before the first step that reads all of the cache', () => {
    const model = toyModel();
    noGrad(() => scope(() => fillInPlace(select(model.tokenEmbeddings.weight, 0, 9), NaN)));
    const stepBehind = (cache: KeyValueCache): number[] =>
      noGrad(() =>
        scope(() => {
          model.forward(idsOf([[1, 2]]), cache);
          const position = tensor([2], { dtype: 'int32' });
          return model.forward(idsOf([[3]]), new CacheStep(cache, position)).toFlatArray();
        }),
      );
    using fresh = new KeyValueCache(8);
    using cleared = new KeyValueCache(8);
    noGrad(() => model.forward(idsOf([[9, 9, 9, 9, 9]]), cleared));
    cleared.clear();
    expect(stepBehind(cleared)).toEqual(stepBehind(fresh));
    cleared.dispose();
    expect(() =>
      cleared.layer(0).write(tensor([2], { dtype: 'int32' }), zeros([1, 2, 1, 4]), zeros([1, 2, 1, 4])),
    ).toThrow(/it has been disposed; make a new one/);
  });

  it('refuses what it cannot serve', () => {
    const model = toyModel();
    using cache = new KeyValueCache(8);
    const position = tensor([0], { dtype: 'int32' });
    const forward = (ids: number[][], at = position) =>
      noGrad(() => model.forward(idsOf(ids), new CacheStep(cache, at)));
    expect(() => forward([[1]])).toThrow(/holds nothing yet; give the model the first tokens/);
    noGrad(() => model.forward(idsOf([[1, 2]]), cache));
    expect(() => forward([[1, 2]])).toThrow(/CacheStep: takes one token a sequence, not 2/);
    expect(() => forward([[1], [2]])).toThrow(/a cache serves one batch of one model/);
    expect(() => model.forward(idsOf([[1]]), new CacheStep(cache, position))).toThrow(
      /run the model in noGrad/,
    );
    expect(() => forward([[1]], tensor([0]))).toThrow(/must be int32 or int64, not float32/);
    expect(() => forward([[1]], tensor([0, 1], { dtype: 'int32' }))).toThrow(/must be \[1\], not \[2\]/);
    expect(() => new CacheStep({} as KeyValueCache, position)).toThrow(/must be a KeyValueCache/);
    expect(() => new CacheStep(cache, 3 as never)).toThrow(/CacheStep/);
  });
});

describe('generate with compile', () => {
  const model = toyModel();

  it.each([
    { temperature: 0 },
    { seed: 2, temperature: 1.5, topK: 5, topP: 0.9 },
    { seed: 3, windowStride: 3 },
    { seed: 4, windowStride: 8 },
  ])('gives the tokens that it gives without, far beyond the context, with %o', (options) => {
    for (const prompt of [[1], [1, 2, 3], [9, 1, 2, 3, 4, 5, 6, 7, 8, 10]]) {
      const run = (compile: boolean) => generate(model, prompt, { maxNewTokens: 20, ...options, compile });
      expect(run(true)).toEqual(run(false));
    }
  });

  it('gives all memory back, also when it ends early', () => {
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const before = live();
    generate(model, [1, 2], { maxNewTokens: 7, compile: true });
    expect(live()).toBe(before);
    const tokens = generateTokens(model, [1, 2], { maxNewTokens: 7, compile: true });
    for (let i = 0; i < 4; i++) scope(() => tokens.next());
    expect(live()).toBeGreaterThan(before + 2 * toyConfig.layers - 1);
    tokens.return();
    expect(live()).toBe(before);
  });

  it('needs the cache', () => {
    expect(() => generate(model, [1], { compile: true, useCache: false })).toThrow(/compile needs the cache/);
    expect(() => generate(model, [1], { compile: 1 as never })).toThrow(/compile/);
  });
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () => {
  it('gives the tokens of the CPU by one graph', () => {
    const there = toyModel({ device: openEmulatedDevice() });
    const options = { temperature: 0, maxNewTokens: 12, windowStride: 4 };
    const expected = generate(toyModel(), [1, 2, 3], options);
    expect(generate(there, [1, 2, 3], { ...options, compile: true })).toEqual(expected);
  });

  it('gives the logits of eager steps', () => {
    const { pairs, hits } = bothWays(openEmulatedDevice());
    expect(largestDifference(pairs)).toBeLessThan(48 * 2 ** -24 * 12);
    expect(hits).toBe(5);
  });
});
