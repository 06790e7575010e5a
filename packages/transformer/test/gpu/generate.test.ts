import { cudaAvailable } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { TransformerLM, generate, generateBatch, presetConfig } from '../../src/index.ts';

describe.skipIf(!cudaAvailable())('generate on a GPU', () => {
  it('gives the same tokens by one graph a step, in less time', () => {
    const model = new TransformerLM(presetConfig('small', { contextLength: 256 }), {
      device: 'cuda',
      seed: 0,
    });
    const count = 100;
    const run = (compile: boolean) => {
      const start = performance.now();
      const tokens = generate(model, [1, 2, 3], { maxNewTokens: count, temperature: 0, compile });
      return { tokens, msPerToken: (performance.now() - start) / count };
    };
    for (const compile of [false, true]) run(compile);
    const [eager, compiled] = [run(false), run(true)];
    console.log(
      `ms a token: eager ${eager.msPerToken.toFixed(2)}, compiled ${compiled.msPerToken.toFixed(2)}`,
    );
    expect(compiled.tokens).toEqual(eager.tokens);
    expect(compiled.msPerToken).toBeLessThan(eager.msPerToken);
    model.dispose();
  });

  it('continues prompts of unequal length as each alone', () => {
    const config = { ...presetConfig('tiny', { contextLength: 64 }), vocabularySize: 97 };
    const model = new TransformerLM(config, { device: 'cuda', seed: 0 });
    const prompts = [
      [1, 2, 3, 4, 5, 6, 7],
      [8, 9],
      [10, 11, 12, 13],
    ];
    const options = { maxNewTokens: 16, temperature: 0 };
    const each = prompts.map((prompt) => generate(model, prompt, options));
    for (const compile of [false, true])
      expect(generateBatch(model, prompts, { ...options, compile })).toEqual(each);
    model.dispose();
  });
});
