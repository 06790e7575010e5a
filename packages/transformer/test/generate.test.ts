import { device } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { generate, generateTokens } from '../src/index.ts';
import { idsOf, toyModel } from './toy-model.ts';

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

  it('ends behind the stop token', () => {
    const free = generate(model, [1], { seed: 1, maxNewTokens: 20 });
    const stopToken = free[5]!;
    const stopped = generate(model, [1], { seed: 1, maxNewTokens: 20, stopToken });
    expect(stopped).toEqual(free.slice(0, free.indexOf(stopToken) + 1));
  });

  it('gives tokens as they come, and keeps no tensor', () => {
    const live = () => device('cpu').memoryStatistics().liveStorages;
    const tokens = generateTokens(model, [1], { maxNewTokens: 5 });
    tokens.next();
    const before = live();
    expect(tokens.next().done).toBe(false);
    expect(live()).toBe(before);
  });

  it('refuses prompts that the model cannot read', () => {
    expect(() => generate(model, [])).toThrow(/at least one token/);
    expect(() => generate(model, [11])).toThrow(/token 11 is outside the vocabulary of 11/);
    expect(() => generate(model, [1], { topK: 0 })).toThrow(/topK/);
  });
});
