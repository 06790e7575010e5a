import {
  CompileError,
  type Tensor,
  autocast,
  compile,
  concat,
  device,
  full,
  mul,
  noGrad,
  ones,
  scope,
  slice,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  type AttentionFunction,
  KeyValueCache,
  TransformerLM,
  type TransformerOptions,
  generate,
  generateTokens,
  plainAttention,
} from '../../src/index.ts';
import { idsOf, toyConfig, toyModel } from '../toy-model.ts';

const rows = [
  [1, 2, 3, 4, 5, 6, 7, 8],
  [9, 3, 5, 7, 0, 2, 4, 10],
];

/** Logits of `rows`, given to the model in pieces of these lengths. */
function inPieces(options: TransformerOptions, lengths: readonly number[]) {
  const model = toyModel(options);
  using cache = new KeyValueCache(8);
  const pieces = lengths.map((length) => {
    const start = cache.length;
    const ids = idsOf(rows.map((row) => row.slice(start, start + length)));
    return noGrad(() => model.forward(ids, cache));
  });
  return { model, logits: concat(pieces, 1).toFlatArray(), length: cache.length };
}

/** The largest difference between elements. */
function difference(a: readonly number[], b: readonly number[]): number {
  expect(a).toHaveLength(b.length);
  return a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);
}

describe('KeyValueCache', () => {
  // Sums of at most 12 products of numbers below 4, in another order in other shapes.
  it.each([[[8]], [[1, 1, 1, 1, 1, 1, 1, 1]], [[3, 5]], [[5, 1, 2]]])(
    'gives the logits of one call in pieces of %j, for a batch',
    (lengths) => {
      const { model, logits, length } = inPieces({}, lengths);
      expect(length).toBe(8);
      expect(difference(logits, model.forward(idsOf(rows)).toFlatArray())).toBeLessThan(48 * 2 ** -24 * 12);
    },
  );

  it.each(['bfloat16', 'float64'] as const)('holds %s', (dtype) => {
    const { model, logits } = inPieces({ dtype }, [3, 1, 4]);
    const exact = toyModel({ dtype: 'float64' });
    exact.loadStateDict(model.stateDict());
    const expected = exact.forward(idsOf(rows)).toFlatArray();
    const whole = difference(model.forward(idsOf(rows)).toFlatArray(), expected);
    // In pieces it is as near to float64 as at once.
    expect(difference(logits, expected)).toBeLessThanOrEqual(2 * whole + 1e-14);
  });

  it('holds what autocast makes of keys and values', () => {
    const model = toyModel();
    using cache = new KeyValueCache(8);
    const [first, rest] = [rows.map((row) => row.slice(0, 4)), rows.map((row) => row.slice(4))];
    const pieces = autocast('bfloat16', () =>
      noGrad(() => [model.forward(idsOf(first), cache), model.forward(idsOf(rest), cache)]),
    );
    const whole = autocast('bfloat16', () => noGrad(() => model.forward(idsOf(rows))));
    const exact = noGrad(() => model.forward(idsOf(rows))).toFlatArray();
    const error = difference(whole.toFlatArray(), exact);
    expect(difference(concat(pieces, 1).toFlatArray(), exact)).toBeLessThanOrEqual(2 * error);
  });

  it('gives attention the new queries, and keys and values from the first on', () => {
    const shapes: string[] = [];
    const attention: AttentionFunction = (q, k, v, settings) => {
      shapes.push([q, k, v].map(({ shape }) => shape.join()).join(' '));
      return plainAttention(q, k, v, settings);
    };
    inPieces({ attention }, [3, 1]);
    const layers = <T>(shape: T) => Array<T>(toyConfig.layers).fill(shape);
    expect(shapes).toEqual([...layers('2,2,3,4 2,2,3,4 2,2,3,4'), ...layers('2,2,1,4 2,2,4,4 2,2,4,4')]);
  });

  it('begins anew when it is cleared, in the same memory', () => {
    const model = toyModel();
    const cache = new KeyValueCache(8);
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const before = live();
    const run = () => scope(() => noGrad(() => model.forward(idsOf(rows), cache)).toFlatArray());
    const first = run();
    expect(live()).toBe(before + 2 * toyConfig.layers);
    cache.clear();
    expect(cache.length).toBe(0);
    expect(run()).toEqual(first);
    expect(live()).toBe(before + 2 * toyConfig.layers);
    cache.dispose();
    cache.dispose();
    expect(live()).toBe(before);
    expect(run).toThrow(/KeyValueCache: it has been disposed/);
  });

  it('counts nothing of a call that failed', () => {
    let fails = false;
    const attention: AttentionFunction = (q, k, v, settings) => {
      if (fails && k.shape[2] === 4) throw new Error('attention failed');
      return plainAttention(q, k, v, settings);
    };
    const model = toyModel({ attention });
    using cache = new KeyValueCache(8);
    noGrad(() => model.forward(idsOf([[1, 2, 3]]), cache));
    fails = true;
    expect(() => noGrad(() => model.forward(idsOf([[4]]), cache))).toThrow('attention failed');
    expect(cache.length).toBe(3);
    fails = false;
    const retried = noGrad(() => model.forward(idsOf([[4]]), cache)).toFlatArray();
    const whole = noGrad(() => slice(model.forward(idsOf([[1, 2, 3, 4]])), 1, 3)).toFlatArray();
    expect(difference(retried, whole)).toBeLessThan(48 * 2 ** -24 * 12);
  });

  it.each([1, 3])(
    'is refused by a layer that has stored none of its %i positions, as that of a deeper model',
    (count) => {
      using cache = new KeyValueCache(8);
      const deeper = new TransformerLM({ ...toyConfig, layers: 3 });
      noGrad(() => {
        toyModel().forward(idsOf([[1, 2, 3].slice(0, count)]), cache);
        expect(() => deeper.forward(idsOf([[4]]), cache)).toThrow(
          `KeyValueCache: this layer has stored none of its ${count} positions; a cache serves one model, from the first token on.`,
        );
        cache.clear();
        expect(deeper.forward(idsOf([[4]]), cache).shape).toEqual([1, 1, 11]);
      });
    },
  );

  it('says what does not fit', () => {
    const model = toyModel();
    for (const capacity of [0, 1.5, NaN])
      expect(() => new KeyValueCache(capacity)).toThrow(/capacity must be a whole number of one or more/);
    const run = (ids: readonly (readonly number[])[], cache: KeyValueCache) =>
      noGrad(() => model.forward(idsOf(ids), cache));
    const cache = new KeyValueCache(4);
    run([[1, 2, 3]], cache);
    expect(() => run([[1, 2]], cache)).toThrow(/2 more tokens do not fit after 3 of 4/);
    expect(() => cache.advance(2)).toThrow(/2 more tokens/);
    expect(() => run([[1], [2]], cache)).toThrow(
      /it holds \[batch, heads, dimension\] \[1, 2, 4\], and got \[2, 2, 4\]/,
    );
    expect(() => noGrad(() => toyModel({ dtype: 'float64' }).forward(idsOf([[1]]), cache))).toThrow(
      /it holds float32, and got float64; give all calls of a cache one model/,
    );
    expect(() => model.forward(idsOf([[1]]), new KeyValueCache(4))).toThrow(
      /gradients do not pass through.*noGrad/,
    );
    const wide = new KeyValueCache(100);
    run([[1, 2, 3, 4, 5, 6, 7, 8]], wide);
    expect(() => run([[1]], wide)).toThrow(/9 tokens is longer than the context of 8/);
    const keys = ones([1, 2, 1, 4], { requiresGrad: true });
    expect(() => new KeyValueCache(4).layer(0).append(keys.detach(), keys)).toThrow(/gradients do not pass/);
    const layer = new KeyValueCache(4).layer(0);
    expect(() => layer.append(ones([1, 2, 1, 4]), ones([1, 2, 2, 4]))).toThrow(
      /LayerCache\.append: keys \[1, 2, 1, 4\] and values \[1, 2, 2, 4\] must be of one shape/,
    );
    expect(layer.append(ones([1, 2, 1, 4]), ones([1, 2, 1, 4])).values.shape).toEqual([1, 2, 1, 4]);
    run([[4]], cache);
    expect(cache.length).toBe(4);
  });
});

describe('a KeyValueCache in a compiled function', () => {
  const model = toyModel();
  const live = () => device('cpu').memoryStatistics().liveStorages;

  it('is refused where it was there before: a replay would stay at one position', () => {
    const before = live();
    {
      using cache = new KeyValueCache(8);
      using ids = idsOf([[1, 2]]);
      const f = compile((given: Tensor) => model.forward(given, cache));
      const run = () => noGrad(() => scope(() => void f(ids)));
      for (let i = 0; i < 3; i++)
        expect(run).toThrow(
          /KeyValueCache\.advance counts positions on the host.*Give the model a CacheStep/,
        );
      expect(cache.length).toBe(0);
      const clears = compile((given: Tensor) => (cache.clear(), mul(given, 2)));
      expect(() => clears(ids)).toThrow(/KeyValueCache\.clear counts positions/);
    }
    expect(live()).toBe(before);
  });

  it('is written where its positions are: they are counted outside', () => {
    using cache = new KeyValueCache(4);
    const f = compile((keys: Tensor) => cache.layer(0).append(keys, mul(keys, 2)).keys);
    const row = (value: number) => full([1, 1, 1, 2], value);
    const seen = noGrad(() =>
      [1, 2, 3, 4].map((value) => {
        const keys = scope(() => f(row(value)).toFlatArray());
        cache.advance(1);
        return keys;
      }),
    );
    expect(seen).toEqual([[1, 1], [1, 1, 2, 2], [1, 1, 2, 2, 3, 3], [1, 1, 2, 2, 3, 3, 4, 4]]); // prettier-ignore
    f.dispose();
  });

  it('may be made there, and is one program', () => {
    const f = compile((ids: Tensor) => {
      using cache = new KeyValueCache(8);
      const [first, rest] = [slice(ids, 1, 0, 3), slice(ids, 1, 3, 8)];
      return concat([model.forward(first, cache), model.forward(rest, cache)], 1);
    });
    const ids = idsOf(rows);
    noGrad(() => {
      const expected = model.forward(ids).toFlatArray();
      for (let i = 0; i < 3; i++)
        expect(difference(f(ids).toFlatArray(), expected)).toBeLessThan(48 * 2 ** -24 * 12);
    });
    expect(f.cache).toMatchObject({ size: 1, hits: 2 });
    f.dispose();
  });

  it('of generate leaves nothing behind after its CompileError', () => {
    const before = live();
    const twice = (use: () => void) =>
      compile((x: Tensor) => {
        use();
        return mul(x, 2);
      });
    using x = full([2], 1);
    const here = live();
    for (const isCompiled of [false, true]) {
      const options = { maxNewTokens: 6, compile: isCompiled };
      for (let i = 0; i < 2; i++)
        expect(() => twice(() => generate(model, [1, 2], options))(x)).toThrow(CompileError);
      for (const begun of [1, 2, 3]) {
        const tokens = generateTokens(model, [1, 2], options);
        for (let i = 0; i < begun; i++) tokens.next();
        expect(live()).toBeGreaterThan(here);
        expect(() => twice(() => void tokens.next())(x)).toThrow(CompileError);
        expect(live()).toBe(here);
      }
    }
    expect(here).toBe(before + 1);
  });
});
