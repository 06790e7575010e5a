import { cudaAvailable } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { TransformerLM, generate, presetConfig } from '../../src/index.ts';

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
});
