import { hostCompilerVersion } from '@roofline/cuda/testing';
import {
  type Device,
  type Tensor,
  checkGradients,
  compile,
  device,
  noGrad,
  randn,
  toDevice,
} from '@roofline/tensor-core';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import {
  type AttentionFunction,
  KeyValueCache,
  ModelConfigError,
  TransformerLM,
  generateBatch,
  plainAttention,
} from '../../src/index.ts';
import { withinWindow } from '../../src/layers/sliding-window.ts';
import { families } from '../model/families.ts';
import { idsOf } from '../toy-model.ts';

const scale = 0.4;
const [batch, heads, features] = [2, 2, 3];

/** Queries of the last tokens, keys and values of all. */
function operands(queries: number, keys: number, on: Device = device('cpu'), dtype = 'float64' as const) {
  const of = (count: number, seed: number) =>
    toDevice(randn([batch, heads, count, features], { seed, dtype }), on);
  return [of(queries, 1), of(keys, 2), of(keys, 3)] as const;
}

/** Token i sees the keys j with i − window < j ≤ i: row by row, in float64. */
function reference([q, k, v]: readonly [Tensor, Tensor, Tensor], window: number): number[] {
  const [queries, keys] = [q.shape[2]!, k.shape[2]!];
  const [qs, ks, vs] = [q, k, v].map((x) => x.toFlatArray());
  const out: number[] = [];
  for (let head = 0; head < batch * heads; head++)
    for (let row = 0; row < queries; row++) {
      const i = row + keys - queries;
      const seen = Array.from({ length: keys }, (_, j) => j).filter((j) => j > i - window && j <= i);
      const at = (x: readonly number[], count: number, place: number, f: number) =>
        x[(head * count + place) * features + f]!;
      const all = Array.from({ length: features }, (_, f) => f);
      const scores = seen.map((j) =>
        all.reduce((sum, f) => sum + scale * at(qs!, queries, row, f) * at(ks!, keys, j, f), 0),
      );
      const weights = scores.map((score) => Math.exp(score - Math.max(...scores)));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      for (const f of all)
        out.push(seen.reduce((sum, j, n) => sum + (weights[n]! / total) * at(vs!, keys, j, f), 0));
    }
  return out;
}

/** All windows, from a token that sees itself alone to one that sees all there is. */
const cases = [
  ...[1, 2, 5, 8, 9, 100].map((window) => ({ window, queries: 8, keys: 8 })),
  ...[1, 2, 5, 9, 10, 11].map((window) => ({ window, queries: 3, keys: 10 })),
  ...[1, 4, 7, 8].map((window) => ({ window, queries: 1, keys: 7 })),
];

describe.each([
  [
    'asked for a window',
    (window: number): AttentionFunction =>
      (q, k, v, s) =>
        plainAttention(q, k, v, { ...s, window }),
  ],
  ['within a window', (window: number) => withinWindow(plainAttention, window)],
])('plain attention %s', (_, windowed) => {
  const attentionOf =
    (window: number) =>
    (...qkv: readonly [Tensor, Tensor, Tensor]) =>
      windowed(window)(...qkv, { causal: true, scale });

  it.each(cases)('sees $window of $keys keys from $queries queries', ({ window, queries, keys }) => {
    const qkv = operands(queries, keys);
    const expected = reference(qkv, window);
    attentionOf(window)(...qkv)
      .toFlatArray()
      .forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 12));
  });

  it.each([1, 3, 8])('has the gradient of finite differences, of a window of %i', (window) => {
    checkGradients(attentionOf(window), operands(5, 7));
  });

  it('gives the same compiled', () => {
    const qkv = operands(8, 8);
    const compiled = compile(attentionOf(3));
    for (let run = 0; run < 3; run++)
      expect(noGrad(() => compiled(...qkv)).toFlatArray()).toEqual(attentionOf(3)(...qkv).toFlatArray());
  });
});

describe('a window', () => {
  it('is asked of an attention only where it has to leave out more than the keys that no query sees', () => {
    const asked: unknown[] = [];
    const noting: AttentionFunction = (q, k, v, settings) => {
      asked.push([k.shape[2], settings.window]);
      return plainAttention(q, k, v, settings);
    };
    for (const [window, queries, keys] of [
      [3, 1, 9],
      [3, 4, 9],
      [9, 4, 9],
      [3, 3, 3],
    ] as const)
      withinWindow(noting, window)(...operands(queries, keys), { causal: true, scale });
    expect(asked).toEqual([
      [3, undefined],
      [6, 3],
      [9, undefined],
      [3, undefined],
    ]);
  });

  it('needs a causal mask, and a size of one or more', () => {
    const qkv = operands(4, 4);
    expect(() => plainAttention(...qkv, { causal: false, scale, window: 2 })).toThrow('needs causal: true');
    expect(() => plainAttention(...qkv, { causal: true, scale, window: 0 })).toThrow('window');
  });

  it.each([
    [{ slidingWindow: 0 }, 'slidingWindow must be a whole number of one or more'],
    [{ fullAttentionLayers: [0] }, 'fullAttentionLayers needs a slidingWindow'],
    [{ slidingWindow: 2, fullAttentionLayers: [2] }, 'different numbers of layers, 0 to 1'],
    [{ slidingWindow: 2, fullAttentionLayers: [0, 0] }, 'different numbers of layers, 0 to 1'],
  ])('of a config with %j is refused', (change, message) => {
    const build = () => new TransformerLM({ ...families['qwen2']!, ...change });
    expect(build).toThrow(ModelConfigError);
    expect(build).toThrow(message);
  });

  it('reaches back through as many tokens as layers take it', () => {
    const config = { ...families['qwen2']!, layers: 2, slidingWindow: 3 };
    const model = new TransformerLM(config, { seed: 4, dtype: 'float64' });
    const logits = (first: number) =>
      noGrad(() => model.forward(idsOf([[first, 1, 2, 3, 4, 5, 6]]))).toFlatArray();
    const [one, other] = [logits(7), logits(8)];
    // Two tokens back in each of two layers: the fifth token is the last one that knows of the first.
    const differs = Array.from({ length: 7 }, (_, t) =>
      one!.slice(13 * t, 13 * t + 13).some((value, i) => value !== other![13 * t + i]),
    );
    expect(differs).toEqual([true, true, true, true, true, false, false]);
  });

  it('moves along with a cache and a batch of prompts of unequal lengths', () => {
    const names = [
      'mistral with a window',
      'qwen2 with windows in some layers',
      'gpt2 that sees itself alone',
    ];
    for (const name of names) {
      const model = new TransformerLM(
        { ...families[name]!, contextLength: 16 },
        { seed: 5, dtype: 'float64' },
      );
      const prompts = [[1], [2, 3, 4, 5, 6, 7, 8], [9, 10, 11]];
      const options = { maxNewTokens: 8, temperature: 0 };
      const alone = prompts.map((prompt) => generateBatch(model, [prompt], options)[0]);
      expect(generateBatch(model, prompts, options)).toEqual(alone);
      expect(generateBatch(model, prompts, { ...options, compile: true })).toEqual(alone);
    }
  });

  it('holds for the logits of a padded cache, chunk by chunk', () => {
    const config = { ...families['mistral with a window']!, contextLength: 16 };
    const model = new TransformerLM(config, { seed: 6, dtype: 'float64' });
    const [short, long] = [
      [5, 6, 7, 8, 9],
      [1, 2, 3, 4, 5, 6, 7, 8, 9],
    ];
    const rows = [[0, 0, 0, 0, ...short!], long!];
    using cache = new KeyValueCache(16, { padding: [4, 0] });
    const parts = [
      [0, 6],
      [6, 8],
      [8, 9],
    ].map(([from, to]) => noGrad(() => model.forward(idsOf(rows.map((row) => row.slice(from, to))), cache)));
    const alone = noGrad(() => model.forward(idsOf([short!]))).toFlatArray();
    const last = parts.at(-1)!.toFlatArray().slice(0, 13);
    // Rotary angles are float32, and those of the longer sequence are others.
    last.forEach((value, i) => expect(value).toBeCloseTo(alone[4 * 13 + i]!, 6));
  });
});

// Each kernel takes the host's compiler a second.
describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  it('attention within a window is that of the CPU', () => {
    const on = openEmulatedDevice();
    const of = (place: Device) => {
      const [q, k, v] = [1, 2, 3].map((seed) => toDevice(randn([1, 2, 6, 4], { seed }), place));
      return withinWindow(plainAttention, 3)(q!, k!, v!, { causal: true, scale }).toFlatArray();
    };
    const cpu = of(device('cpu'));
    of(on).forEach((value, i) => expect(value).toBeCloseTo(cpu[i]!, 5));
  });
});
