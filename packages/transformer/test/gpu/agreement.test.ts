import { type DeviceSpec, cudaAvailable } from '@roofline/tensor-core';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { TransformerLM, generate, languageModelLoss } from '../../src/index.ts';
import { overfit } from '../../examples/overfit.ts';
import { compareWithReference, relativeError } from '../torch/agreement.ts';
import { idsOf } from '../toy-model.ts';

const config = {
  vocabularySize: 1000,
  contextLength: 96,
  modelDimension: 128,
  feedForwardDimension: 352,
  layers: 3,
  heads: 4,
};
const rows = (shift: number) =>
  [0, 1].map((row) => Array.from({ length: 96 }, (_, i) => (i * 37 + row * 11 + shift) % 1000));

function run(device: DeviceSpec) {
  const model = new TransformerLM(config, { device, seed: 5 });
  const [ids, targets] = [idsOf(rows(0), device), idsOf(rows(37), device)];
  const logits = model.forward(ids);
  languageModelLoss(model, ids, targets).backward();
  return { model, logits };
}

describe.skipIf(!cudaAvailable())('a model on a GPU', () => {
  it('agrees with PyTorch', () => {
    const golden = fileURLToPath(new URL('../torch/golden.safetensors', import.meta.url));
    expect(compareWithReference(golden, 'cuda')).toEqual({
      logits: expect.closeTo(0, 5),
      loss: expect.closeTo(0, 5),
      gradients: expect.closeTo(0, 4),
      updated: expect.closeTo(0, 5),
    });
  });

  it('starts from the same weights as on the CPU, and gives the same logits and gradients', () => {
    const [cpu, cuda] = [run('cpu'), run('cuda')];
    const pairs = [...cpu.model.parameters()].map(
      (parameter, i) => [[...cuda.model.parameters()][i]!, parameter] as const,
    );
    expect(Math.max(...pairs.map(([ours, theirs]) => relativeError(ours, theirs)))).toBeLessThan(1e-6);
    expect(relativeError(cuda.logits, cpu.logits)).toBeLessThan(5e-6);
    expect(Math.max(...pairs.map(([ours, theirs]) => relativeError(ours.grad!, theirs.grad!)))).toBeLessThan(
      5e-5,
    );
  });

  it('generates the same tokens as on the CPU', () => {
    const tokens = (['cpu', 'cuda'] as const).map((device) =>
      generate(new TransformerLM(config, { device, seed: 5 }), [1, 2, 3], {
        temperature: 0,
        maxNewTokens: 10,
      }),
    );
    expect(tokens[1]).toEqual(tokens[0]);
  });

  it('learns a text by heart', () => {
    const { losses, recited, text } = overfit({ steps: 150, device: 'cuda' });
    expect(losses.at(-1)).toBeLessThan(0.2);
    expect(recited.slice(0, 60)).toBe(text.slice(0, 60));
  });
});
