import { costOf, device, fillInPlace, noGrad, observeOps, scope } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import {
  type GenerateOptions,
  TransformerLM,
  countParametersByModule,
  generate,
  generateTokens,
  plainAttention,
} from '../../src/index.ts';
import { idsOf, toyConfig, toyModel } from '../toy-model.ts';

const model = toyModel();

describe('generate', () => {
  it('takes the likeliest token of the last position at temperature 0', () => {
    const logits = model
      .forward(idsOf([[1, 2, 3]]))
      .toFlatArray()
      .slice(-11);
    expect(generate(model, [1, 2, 3], { temperature: 0, maxNewTokens: 1 })).toEqual([
      logits.indexOf(Math.max(...logits)),
    ]);
  });

  it('refuses a model whose weights are not numbers', () => {
    const broken = toyModel();
    noGrad(() => fillInPlace(broken.lmHead.weight, NaN));
    for (const temperature of [0, 1])
      expect(() => generate(broken, [1], { temperature })).toThrow(
        /logits is NaN, so they give no probabilities/,
      );
  });

  it('repeats by seed, and goes on beyond the context', () => {
    const run = (seed: number) => generate(model, [1], { seed, maxNewTokens: 20 });
    expect(run(1)).toHaveLength(20);
    expect(run(1)).toEqual(run(1));
    expect(run(1)).not.toEqual(run(2));
  });

  it('sees only the last tokens of a long prompt', () => {
    const prompt = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    const options = { temperature: 0, maxNewTokens: 1 };
    expect(generate(model, [0, 0, ...prompt], options)).toEqual(generate(model, prompt.slice(-8), options));
  });

  it('ends after the stop token', () => {
    const free = generate(model, [1], { seed: 1, maxNewTokens: 20 });
    const stopToken = free[5]!;
    const stopped = generate(model, [1], { seed: 1, maxNewTokens: 20, stopToken });
    expect(stopped).toEqual(free.slice(0, free.indexOf(stopToken) + 1));
    // Of several, that which comes first, whatever their order.
    const others = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10].filter((token) => !free.includes(token));
    const several = { seed: 1, maxNewTokens: 20, stopToken: [...others, stopToken] };
    expect(others.length).toBeGreaterThan(0);
    expect(generate(model, [1], several)).toEqual(stopped);
  });

  it('gives tokens as they come, and keeps no tensor', () => {
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const tokens = generateTokens(model, [1], { maxNewTokens: 5 });
    tokens.next();
    const before = live();
    expect(tokens.next().done).toBe(false);
    expect(live()).toBe(before);
  });

  it('gives at most maxNewTokens: none, or so many', () => {
    const count = (maxNewTokens: number) => generate(model, [1], { maxNewTokens }).length;
    expect([0, 1, 3].map(count)).toEqual([0, 1, 3]);
    expect(generate(model, [1], {})).toHaveLength(256);
    const endless = generateTokens(model, [1], { maxNewTokens: Infinity });
    expect([endless.next().done, endless.return().done]).toEqual([false, true]);
  });

  it('draws as if it had been given the seed 0', () => {
    const told = { seed: 0, temperature: 1, windowStride: 1 };
    expect(generate(model, [1], { maxNewTokens: 20 })).toEqual(
      generate(model, [1], { maxNewTokens: 20, ...told }),
    );
  });

  it('refuses prompts that the model cannot read', () => {
    expect(() => generate(model, [])).toThrow(/at least one token/);
    expect(() => generate(model, [11])).toThrow(/token 11 is outside the vocabulary of 11/);
    expect(() => generate(model, [-1])).toThrow(/token -1/);
    expect(() => generate(model, [1.5])).toThrow(/token 1.5/);
    expect(() => generate(model, [1], { topK: 0 })).toThrow(/topK/);
    for (const windowStride of [0, 9, 1.5])
      expect(() => generate(model, [1], { windowStride })).toThrow(/windowStride .* from 1 to .* 8, not/);
    for (const maxNewTokens of [-1, 1.5, NaN])
      expect(() => generate(model, [1], { maxNewTokens })).toThrow(/maxNewTokens .* not/);
  });
});

describe('generate with its cache', () => {
  const prompts = {
    short: [1, 2, 3],
    whole: [1, 2, 3, 4, 5, 6, 7, 8],
    long: [9, 1, 2, 3, 4, 5, 6, 7, 8, 10],
  };

  describe.each(Object.entries(prompts))('from a %s prompt', (_, prompt) => {
    it.each([
      { temperature: 0 },
      { seed: 1 },
      { seed: 2, temperature: 1.5, topK: 5, topP: 0.9 },
      { seed: 3, windowStride: 3 },
      { seed: 4, windowStride: 8 },
    ])('gives the tokens that it gives without, far beyond the context, with %o', (options) => {
      const run = (useCache: boolean) => generate(model, prompt, { maxNewTokens: 20, ...options, useCache });
      expect(run(true)).toEqual(run(false));
    });
  });

  it('sees the window that windowStride says', () => {
    const next = (window: readonly number[]) =>
      generate(model, window, { temperature: 0, maxNewTokens: 1, useCache: false })[0]!;
    // Of 8 tokens of context: the first of the window is 0 for up to 8 tokens, 3 for up to 11, 6 for up to 14...
    const starts = [0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9];
    const tokens = [1, 2, 3, 4];
    for (const start of starts) tokens.push(next(tokens.slice(start)));
    for (const useCache of [true, false]) {
      const options = { temperature: 0, maxNewTokens: starts.length, windowStride: 3, useCache };
      expect(generate(model, [1, 2, 3, 4], options)).toEqual(tokens.slice(4));
    }
  });

  // Products alone: 2 FLOPs a parameter of theirs, and 4 · d for each earlier position in each layer.
  it('runs over one token a step, and over the window each time that it moves', () => {
    const config = { ...toyConfig, contextLength: 16 };
    const small = new TransformerLM(config, { seed: 3 });
    const { attention, feedForward } = countParametersByModule(config);
    const parameters = attention + feedForward + config.vocabularySize * config.modelDimension;
    const flops = (seen: number, added: number) =>
      2 * added * parameters + 4 * config.layers * config.modelDimension * added * seen;
    const steps = (options: GenerateOptions) =>
      flopsOfSteps(small, [1, 2, 3, 4], { maxNewTokens: 20, ...options });
    const lengths = Array.from({ length: 20 }, (_, i) => Math.min(4 + i, 16));
    expect(steps({ useCache: false })).toEqual(lengths.map((length) => flops(length, length)));
    expect(steps({})).toEqual(lengths.map((length, i) => flops(length, i === 0 ? 4 : i <= 12 ? 1 : 16)));
    // Up to 16 tokens, then windows that begin with 9 and grow to 16.
    const inWindow = lengths.map((_, i) => (i <= 12 ? 4 + i : 9 + (i - 13)));
    expect(steps({ windowStride: 8 })).toEqual(
      inWindow.map((length, i) => flops(length, i === 0 ? 4 : i === 13 ? 9 : 1)),
    );
  });

  it('takes memory that the context bounds, and gives all of it back', () => {
    const cpu = device('cpu');
    const statistics = () => cpu.memoryStatistics();
    const peak = (maxNewTokens: number) => {
      cpu.resetPeakMemory();
      const { allocatedBytes } = statistics();
      generate(model, [1], { maxNewTokens });
      return statistics().peakAllocatedBytes - allocatedBytes;
    };
    peak(8);
    expect(peak(60)).toBe(peak(20));

    const broken = failing();
    const { liveStorages } = statistics();
    generate(model, [1, 2], { maxNewTokens: 3 });
    expect(statistics().liveStorages).toBe(liveStorages);
    const tokens = generateTokens(model, [1, 2], { maxNewTokens: 3 });
    // A step in a scope of the caller's must not take the cache with it.
    scope(() => tokens.next());
    expect(statistics().liveStorages).toBe(liveStorages + 2 * toyConfig.layers);
    expect(tokens.next().done).toBe(false);
    tokens.return();
    expect(statistics().liveStorages).toBe(liveStorages);
    for (const token of generateTokens(model, [1, 2])) if (token >= 0) break;
    expect(statistics().liveStorages).toBe(liveStorages);
    expect(() => generate(broken, [1, 2], { maxNewTokens: 5 })).toThrow('attention failed');
    expect(statistics().liveStorages).toBe(liveStorages);
  });

  it('takes no more memory than the tokens to come', () => {
    const wide = new TransformerLM({ ...toyConfig, contextLength: 1000 });
    const allocated = () => device('cpu').memoryStatistics().allocatedBytes;
    const before = allocated();
    const tokens = generateTokens(wide, [1, 2, 3], { maxNewTokens: 6 });
    tokens.next();
    // Three positions, and five of the six tokens: the last is never read. A tensor's 256 bytes are whole cache lines.
    const positions = 8;
    expect(allocated() - before).toBe(4 * 2 * toyConfig.layers * positions * toyConfig.modelDimension);
    tokens.return();
    wide.dispose();
  });
});

describe.skipIf(!hostCompilerVersion())('generate on the emulated GPU (needs g++)', () => {
  it('gives the tokens of the CPU, with its cache and without', () => {
    const there = toyModel({ device: openEmulatedDevice() });
    const options = { temperature: 0, maxNewTokens: 12, windowStride: 4 };
    const expected = generate(model, [1, 2, 3], options);
    expect(generate(there, [1, 2, 3], options)).toEqual(expected);
    expect(generate(there, [1, 2, 3], { ...options, useCache: false })).toEqual(expected);
  });
});

/** FLOPs of the matrix products that the model runs for each token. */
function flopsOfSteps(model: TransformerLM, prompt: readonly number[], options: GenerateOptions): number[] {
  const steps: number[] = [];
  let flops = 0;
  const stop = observeOps({
    before(op, inputs, outputs, attributes) {
      if (op.name === 'matmul') flops += costOf(op, inputs, outputs, attributes as never).flops;
    },
  });
  try {
    for (const _ of generateTokens(model, prompt, options)) {
      steps.push(flops);
      flops = 0;
    }
  } finally {
    stop();
  }
  return steps;
}

/** A model whose second token finds no attention. */
function failing(): TransformerLM {
  let calls = 0;
  return toyModel({
    attention: (q, k, v, settings) => {
      if (++calls > toyConfig.layers + 1) throw new Error('attention failed');
      return plainAttention(q, k, v, settings);
    },
  });
}
