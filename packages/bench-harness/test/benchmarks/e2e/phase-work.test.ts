import { expect, it } from 'vitest';
import { phaseWork } from '../../../src/benchmarks/e2e/phase-work.ts';

const config = {
  vocabularySize: 100,
  contextLength: 16,
  modelDimension: 8,
  feedForwardDimension: 24,
  layers: 3,
  heads: 2,
};

/** Two matrices of the vocabulary, and in each of three layers four for attention, three of the feed-forward, two norms. */
const PARAMETERS = 2 * 100 * 8 + 3 * (4 * 8 * 8 + 3 * 8 * 24 + 2 * 8) + 8;
/** Without the embedding, which is a lookup, and the norms. */
const WEIGHTS = 100 * 8 + 3 * (4 * 8 * 8 + 3 * 8 * 24);
const [BATCH, TOKENS] = [5, 5 * 16];

it('counts FLOPs of the products and the bytes that nothing avoids', () => {
  expect([PARAMETERS, WEIGHTS]).toEqual([4152, 3296]);
  expect(phaseWork(config, BATCH, 'train-step', 'float32')).toEqual({
    // 2 · 80 tokens · 3296 weights, and 4 · batch · context² · d of each layer's attention; logits are 100 a token.
    forward: { flops: 527_360 + 122_880, bytes: 4 * 4152 + 4 * 8000 },
    // Twice the products; parameters read, gradients written, logits read back.
    backward: { flops: 1_300_480, bytes: 2 * 4 * 4152 + 4 * 8000 },
    // AdamW reads p, g, m, v and writes p, m, v.
    optimizer: { flops: 12 * 4152, bytes: 28 * 4152 },
  });
  expect(TOKENS * config.vocabularySize).toBe(8000);
});

it.each(['bfloat16', 'float16'] as const)(
  'halves the logits alone in %s: parameters stay float32',
  (dtype) => {
    const { forward, backward, optimizer } = phaseWork(config, BATCH, 'train-step', dtype);
    expect(forward!.bytes).toBe(4 * 4152 + 2 * 8000);
    expect(backward!.bytes).toBe(8 * 4152 + 2 * 8000);
    expect(optimizer!.bytes).toBe(28 * 4152);
  },
);

it('has the phases of its mode', () => {
  const phases = (mode: Parameters<typeof phaseWork>[2]) =>
    Object.keys(phaseWork(config, 1, mode, 'float32'));
  expect(phases('forward')).toEqual(['forward']);
  expect(phases('forward-backward')).toEqual(['forward', 'backward']);
  expect(phases('train-step')).toEqual(['forward', 'backward', 'optimizer']);
});
