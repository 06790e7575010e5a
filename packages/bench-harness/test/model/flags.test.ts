import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TransformerLM, readPretrainedConfig } from '@roofline/transformer';
import { afterAll, describe, expect, it } from 'vitest';
import { describeModel } from '../../src/commands/describe-model.ts';
import { UsageError } from '../../src/errors.ts';
import { chooseModels } from '../../src/model/flags.ts';
import { modelShape } from '../../src/model/shape.ts';

const golden = join(import.meta.dirname, '../../../transformer/test/pretrained/golden');
const folder = mkdtempSync(join(tmpdir(), 'roofline-model-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('--model', () => {
  it.each(['llama', 'llama-biases', 'mistral', 'qwen2', 'qwen3', 'gpt2'])(
    'is the model of %s, whole, as a record keeps it',
    async (family) => {
      const [model] = await chooseModels({ model: [join(golden, family, 'config.json')] }, 'small');
      expect(model!.size).toBe(family);
      const { contextLength, ...sizes } = readPretrainedConfig(join(golden, family)).config;
      const kept = modelShape.parse(JSON.parse(JSON.stringify(model!.shape)));
      expect(kept).toEqual(sizes);
      const { parameters, flops } = describeModel(model!, { batch: 1, context: contextLength });
      const built = new TransformerLM({ ...kept, contextLength });
      expect(parameters).toBe([...built.parameters()].reduce((sum, { size }) => sum + size, 0));
      expect(flops.forward).toBeGreaterThan(0);
    },
  );

  it('takes several, with changes, by the names of their folders or files', async () => {
    const file = join(folder, 'shrunk.json');
    const fields = { model_type: 'gpt2', vocab_size: 9, n_positions: 8, n_embd: 4, n_layer: 1, n_head: 2 };
    writeFileSync(file, JSON.stringify(fields));
    const models = await chooseModels({ model: [join(golden, 'qwen3'), file], layers: 3 }, 'small');
    expect(models.map(({ size, shape }) => [size, shape.layers])).toEqual([
      ['qwen3 layers=3', 3],
      ['shrunk layers=3', 3],
    ]);
  });

  it.each([
    [{ size: ['small'] }, /--model and --size both say which model/],
    [{ peer: 'torch' }, /--peer runs the layers of the presets/],
    [{ model: [join(folder, 'nothing')] }, /--model: .*nothing cannot be read/],
    [{ heads: 3 }, /--heads 3 must be a multiple of keyValueHeads 2/],
  ])('refuses %j', async (change, message) => {
    const choice = chooseModels({ model: [join(golden, 'llama')], ...change }, 'small');
    await expect(choice).rejects.toThrow(UsageError);
    await expect(choice).rejects.toThrow(message);
  });
});
