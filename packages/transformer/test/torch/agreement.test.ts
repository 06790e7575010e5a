import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { randomNumbers } from '../../src/generation/random-numbers.ts';
import type { ModelConfig } from '../../src/index.ts';
import { compareWithReference } from './agreement.ts';
import { findTorchPython, runReference } from './python.ts';

const python = findTorchPython();
const folder = mkdtempSync(join(tmpdir(), 'roofline-torch-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Sizes that fit together, drawn from a seed. */
function randomConfig(seed: number): ModelConfig {
  const random = randomNumbers(seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const heads = between(1, 4);
  return {
    vocabularySize: between(20, 300),
    contextLength: between(3, 40),
    modelDimension: heads * 2 * between(2, 12),
    feedForwardDimension: between(10, 150),
    layers: between(1, 4),
    heads,
  };
}

/** Of values up to 5e-6 by norm, of gradients up to 5e-5. */
const agreement = {
  logits: expect.closeTo(0, 5),
  loss: expect.closeTo(0, 5),
  gradients: expect.closeTo(0, 4),
  updated: expect.closeTo(0, 5),
};

describe('agreement with PyTorch', () => {
  // Made by write-golden.ts; the file's metadata say from which seed and by which version.
  it('golden: logits, loss, gradients and three AdamW steps', () => {
    const path = fileURLToPath(new URL('golden.safetensors', import.meta.url));
    expect(compareWithReference(path, 'cpu')).toEqual(agreement);
  });

  it.skipIf(!python).each([1, 2])('live, random sizes of seed %i (needs a Python with PyTorch)', (seed) => {
    const path = join(folder, `${seed}.safetensors`);
    runReference(python!, randomConfig(seed), seed, path);
    expect(compareWithReference(path, 'cpu')).toEqual(agreement);
  });
});
