import { ones } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { RMSNorm, TransformerLM, generate } from '../src/index.ts';
import { toyConfig, toyModel } from './toy-model.ts';

describe('options that do not exist', () => {
  it.each<[name: string, nearest: string, use: (options: object) => unknown]>([
    ['top_k', 'topK', (options) => generate(toyModel(), [1], options)],
    ['max_new_tokens', 'maxNewTokens', (options) => generate(toyModel(), [1], options)],
    ['dType', 'dtype', (options) => new TransformerLM(toyConfig, options)],
    ['stict', 'strict', (options) => new RMSNorm(1, {}).loadStateDict({ weight: ones([1]) }, options)],
  ])('%s throws, and names %s', (name, nearest, use) => {
    const attempt = () => use({ [name]: 1 });
    expect(attempt).toThrow(expect.objectContaining({ code: 'OPTION' }));
    expect(attempt).toThrow(new RegExp(`"${name}".*${nearest}`));
  });

  it('are not those that do', () => {
    const options = { maxNewTokens: 1, stopToken: 1, seed: 1, useCache: true, windowStride: 1 };
    expect(() => generate(toyModel(), [1], { ...options, temperature: 1, topK: 1, topP: 1 })).not.toThrow();
  });
});
