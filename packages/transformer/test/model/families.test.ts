import {
  checkGradients,
  device,
  fromTypedArray,
  keep,
  matmul,
  noGrad,
  randn,
  scope,
  slice,
  sum,
  tensor,
  transpose,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  CausalSelfAttention,
  KeyValueCache,
  type ModelConfig,
  ModelConfigError,
  RotaryEmbedding,
  TransformerLM,
  costOf,
  countParameters,
  generate,
  languageModelLoss,
  parameterShapes,
  plainAttention,
} from '../../src/index.ts';
import { idsOf, toyConfig } from '../toy-model.ts';
import { families } from './families.ts';

const tokens = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => (5 * i * i + seed) % 13);

/** A model whose biases and norms are not what they begin as, so that they matter. */
function shaken(config: ModelConfig, dtype: 'float32' | 'float64' = 'float32'): TransformerLM {
  const model = new TransformerLM(config, { seed: 7, dtype });
  const state = Object.entries(model.stateDict()).map(([name, parameter], i) => [
    name,
    parameter.rank === 1
      ? parameter.add(randn(parameter.shape, { seed: i, dtype }).mul(0.3))
      : parameter.mul(1),
  ]);
  model.loadStateDict(Object.fromEntries(state));
  return model;
}

describe.each(Object.entries(families))('a model of the family of %s', (_, config) => {
  it('has the parameters that are counted without it', () => {
    const model = new TransformerLM(config);
    const built = [...model.namedParameters()].map(([name, { shape }]) => [name, shape]);
    expect([...parameterShapes(config)]).toEqual(built);
    expect(countParameters(config)).toBe(
      [...model.parameters()].reduce((total, { size }) => total + size, 0),
    );
  });

  it('keeps as many bytes from forward to backward as costOf says', () => {
    const many = { ...config, vocabularySize: 300, contextLength: 64, feedForwardDimension: 100, layers: 3 };
    const model = new TransformerLM(many);
    const ids = idsOf([tokens(48, 1), tokens(48, 2)]);
    const allocated = () => device('cpu').memoryStatistics().allocatedBytes;
    scope(() => languageModelLoss(model, ids, ids));
    const before = allocated();
    const loss = keep(scope(() => languageModelLoss(model, ids, ids)));
    const ratio = (allocated() - before) / costOf(many, { batch: 2, context: 48 }).activationBytes;
    loss.dispose();
    expect(ratio).toBeGreaterThan(0.95);
    expect(ratio).toBeLessThan(1.05);
  });

  it('gives with a cache, token by token, what it gives without, and the same greedy tokens', () => {
    const model = shaken(config, 'float64');
    const rows = [tokens(9, 1), tokens(9, 3)];
    const whole = noGrad(() => model.forward(idsOf(rows))).toFlatArray();
    using cache = new KeyValueCache(12);
    for (const [from, to] of [
      [0, 4],
      [4, 5],
      [5, 8],
      [8, 9],
    ] as const) {
      const part = noGrad(() => model.forward(idsOf(rows.map((row) => row.slice(from, to))), cache));
      part.toFlatArray().forEach((value, i) => {
        const [row, rest] = [Math.floor(i / ((to - from) * 13)), i % ((to - from) * 13)];
        expect(value).toBeCloseTo(whole[(row * 9 + from) * 13 + rest]!, 10);
      });
    }
    for (const stride of [1, 5]) {
      const options = { maxNewTokens: 20, temperature: 0, windowStride: stride };
      const expected = generate(model, tokens(4, 2), { ...options, useCache: false });
      expect(generate(model, tokens(4, 2), options)).toEqual(expected);
      expect(generate(model, tokens(4, 2), { ...options, compile: true })).toEqual(expected);
    }
  });

  it('gives a short sequence of a padded batch what it gives it alone', () => {
    const model = shaken(config, 'float64');
    const [short, long] = [tokens(5, 4), tokens(11, 6)];
    const padded = [...short, ...Array.from({ length: 6 }, () => 0)];
    const targets = [...short.slice(1), 7];
    const batch = noGrad(() => slice(model.forward(idsOf([padded, long])), 1, 0, 5)).toFlatArray();
    const alone = noGrad(() => model.forward(idsOf([short]))).toFlatArray();
    alone.forEach((value, i) => expect(value).toBeCloseTo(batch[i]!, 10));

    const paddedTargets = [...targets, ...Array.from({ length: 6 }, () => -100)];
    const lossAlone = scope(() => languageModelLoss(model, idsOf([short]), idsOf([targets])).item());
    const loss = scope(() => languageModelLoss(model, idsOf([padded]), idsOf([paddedTargets])).item());
    expect(loss).toBeCloseTo(lossAlone, 10);
  });

  // Along random directions through all parameters at once: one by one they would take minutes.
  it('has the gradients of finite differences', () => {
    const model = shaken(config, 'float64');
    const ids = idsOf([tokens(9, 1), tokens(9, 2)]);
    const loss = () => scope(() => languageModelLoss(model, ids, ids));
    loss().backward();
    const at = [...model.parameters()].map((parameter) => parameter.detach().mul(1));
    for (const seed of [1, 2, 3]) {
      const direction = at.map(({ shape }, i) => randn(shape, { seed: 100 * seed + i, dtype: 'float64' }));
      const slope = [...model.parameters()].reduce(
        (total, { grad }, i) => total + sum(grad!.mul(direction[i]!)).item(),
        0,
      );
      const lossAt = (step: number) => {
        const moved = at.map((values, i) => values.add(direction[i]!.mul(step)));
        const names = [...model.namedParameters()].map(([name], i) => [name, moved[i]!]);
        model.loadStateDict(Object.fromEntries(names));
        return loss().item();
      };
      const [step, measured] = [1e-5, (lossAt(1e-5) - lossAt(-1e-5)) / 2e-5];
      expect(Math.abs(measured - slope) / Math.abs(slope)).toBeLessThan(step);
    }
  });
});

describe('grouped-query attention', () => {
  it('is that of repeated heads, also of strided views', () => {
    const heads = (count: number, seed: number) =>
      transpose(randn([2, 5, count, 4], { seed, dtype: 'float64', requiresGrad: true }), 1, 2);
    const [q, k, v] = [heads(6, 1), heads(2, 2), heads(2, 3)];
    const settings = { causal: true, scale: 0.5 };
    const repeat = tensor(
      Array.from({ length: 6 }, (_, i) => [Number(i < 3), Number(i >= 3)]),
      { dtype: 'float64' },
    );
    const repeated = (x: typeof k) => transpose(matmul(repeat, x.transpose(1, 2)), 1, 2); // [6, 2] · [B, T, 2, d]
    const expected = plainAttention(q, repeated(k), repeated(v), settings).toFlatArray();
    const actual = plainAttention(q, k, v, settings);
    expect(actual.shape).toEqual([2, 6, 5, 4]);
    actual.toFlatArray().forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 12));
  });

  it('has the gradients of finite differences through its projections', () => {
    const positions = new RotaryEmbedding({ headDimension: 4, contextLength: 5 });
    const attention = new CausalSelfAttention({
      ...{ modelDimension: 6, heads: 4, keyValueHeads: 2, headDimension: 4, bias: 'all' },
      ...{ queryKeyNormEpsilon: 1e-6, positions, dtype: 'float64' },
    });
    const x = randn([2, 5, 6], { seed: 4, dtype: 'float64', requiresGrad: true });
    checkGradients(() => attention.forward(x), [x, ...attention.parameters()]);
  });
});

it("trains tied weights on both uses' gradients", () => {
  const config = { ...families['qwen2']!, layers: 1 };
  const tied = new TransformerLM(config, { dtype: 'float64' });
  const free = new TransformerLM({ ...config, tieWordEmbeddings: false }, { dtype: 'float64' });
  free.loadStateDict({ ...tied.stateDict(), 'lm_head.weight': tied.lmHead.weight.detach() });
  const ids = idsOf([tokens(6, 1)]);
  for (const model of [tied, free]) scope(() => languageModelLoss(model, ids, ids).backward());
  const both = free.tokenEmbeddings.weight.grad!.add(free.lmHead.weight.grad!).toFlatArray();
  tied.lmHead.weight.grad!.toFlatArray().forEach((value, i) => expect(value).toBeCloseTo(both[i]!, 12));
});

describe('configs that do not fit together', () => {
  it.each([
    [{ keyValueHeads: 3 }, /heads 2 must be a multiple of keyValueHeads 3/],
    [{ headDimension: 3 }, /headDimension 3 must be even/],
    [{ headDimension: 0 }, /headDimension must be a whole number of one or more, got 0/],
    [
      { attentionBias: 'some' as never },
      /attentionBias must be none or query-key-value or all, got the text "some"/,
    ],
    [{ feedForward: 'relu' as never }, /feedForward must be swiglu or gelu or gelu-tanh/],
    [{ normEpsilon: -1 }, /normEpsilon must be a finite number of zero or more, got -1/],
    [{ queryKeyNorm: 1 as never }, /queryKeyNorm must be true or false, got 1/],
    [
      { ropeScaling: { type: 'ntk' } as never },
      /ropeScaling must be linear, llama3 or yarn, not the text "ntk"/,
    ],
    [{ ropeScaling: { type: 'linear', factor: 0 } as const }, /ropeScaling.factor must be positive/],
    [
      { positions: 'learned', ropeScaling: { type: 'linear', factor: 2 } } as const,
      /ropeScaling needs rotary positions, not learned/,
    ],
  ])('refuses %o', (change, message) => {
    const build = () => new TransformerLM({ ...toyConfig, ...change });
    expect(build).toThrow(ModelConfigError);
    expect(build).toThrow(message);
  });

  it('refuses more tokens than there are learned positions', () => {
    const model = new TransformerLM(families['gpt2']!);
    const ids = fromTypedArray(new Int32Array(13), [1, 13]);
    expect(() => model.forward(ids)).toThrow(
      /PositionEmbedding: a sequence of 13 tokens is longer than .* 12/,
    );
  });

  it('keeps the presets as they were', () => {
    const build = (config: ModelConfig) => {
      const model = new TransformerLM(config, { seed: 5 });
      return noGrad(() => sum(model.forward(idsOf([[1, 2, 3]])))).item();
    };
    const spelt: ModelConfig = {
      ...toyConfig,
      ...{ keyValueHeads: 2, headDimension: 4, attentionBias: 'none', feedForward: 'swiglu', norm: 'rms' },
      ...{ normEpsilon: 1e-5, positions: 'rotary', queryKeyNorm: false, feedForwardBias: false },
    };
    expect(build(spelt)).toBe(build(toyConfig));
  });
});
