import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { cudaAvailable } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { loadPretrained } from '../../src/index.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';
import { compareWithGolden } from '../pretrained/compare.ts';

const golden = join(import.meta.dirname, '../pretrained/golden');
const folder = temporaryFolder();

describe.skipIf(!cudaAvailable())('models of transformers on a GPU', () => {
  it.each(readdirSync(golden))('%s calculates what the reference does', (family) => {
    const { model } = loadPretrained(join(golden, family), { device: 'cuda' });
    const { greedy, ...errors } = compareWithGolden(model, join(golden, family), folder(family));
    expect(greedy).toBe(true);
    for (const error of Object.values(errors)) expect(error).toBeLessThan(2e-6);
  });
});
