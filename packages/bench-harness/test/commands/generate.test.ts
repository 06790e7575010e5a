import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TransformerLM, savePretrained } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { openTokenizer } from '../../src/tokenize/open-tokenizer.ts';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { byteLevel, patterns, sentencePiece } from '../tokenize/small-tokenizers.ts';

const onCpu = ['--device', 'cpu'];

/** A folder that a tokenizer lies in. */
function folderWith(tokenizer: object, config: object = {}): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  return folder;
}

/** A model of that many tokens in a folder, which knows nothing. */
function saveModel(folder: string, vocabularySize: number): void {
  const sizes = { modelDimension: 16, feedForwardDimension: 16, layers: 1, heads: 2, contextLength: 64 };
  using model = new TransformerLM({ vocabularySize, ...sizes }, { seed: 3 });
  savePretrained(model, folder);
}

describe('roofline generate', () => {
  it('writes what a training on a tokenizer learnt, by that tokenizer', async () => {
    const at = (name: string) => join(folder, name);
    const folder = folderWith(byteLevel(patterns.gpt2));
    writeFileSync(at('text.txt'), 'The roof is größe. '.repeat(60));
    const words = [at('text.txt'), '--tokenizer', folder, '--end-of-text', '<|endoftext|>'];
    await runMain(['tokenize', ...words, '--out', at('data.bin')]);
    const toy = ['--d-model', '16', '--d-ff', '16', '--layers', '1', '--heads', '2', '--context', '8'];
    const steps = [
      '--batch',
      '8',
      '--steps',
      '60',
      '--lr',
      '3e-2',
      '--save-every',
      '0',
      '--execution',
      'eager',
    ];
    const trained = await runMain([
      ...['train', '--data', at('data.bin'), '--out', at('a'), ...toy, ...steps, ...onCpu],
    ]);
    expect(trained).toMatchObject({ exitCode: 0 });
    // The training has a tokenizer of its own, whatever becomes of the one before.
    rmSync(at('tokenizer.json'));
    expect(openTokenizer(at('a/tokenizer')).endOfText).toBe(600);
    const prompt = ['--prompt', 'The roof is', '--tokens', '12', '--temperature', '0.01'];
    const { stdout, exitCode } = await runMain(['generate', '--checkpoint', at('a'), ...prompt, ...onCpu]);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/^The roof is größe\. The roof/),
    });
    renameSync(at('a/tokenizer'), at('elsewhere'));
    const lost = await runMain(['generate', '--checkpoint', at('a'), ...prompt, ...onCpu]);
    expect(lost).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/name its tokenizer by --tokenizer/),
    });
    const named = ['--tokenizer', at('elsewhere')];
    expect((await runMain(['generate', '--checkpoint', at('a'), ...prompt, ...named, ...onCpu])).stdout).toBe(
      stdout,
    );
    const again = await runMain(['train', '--resume', at('a'), '--steps', '61', ...onCpu]);
    expect(again.stderr.replaceAll('\n', ' ')).toMatch(
      /tokenizer.json, is not there: `roofline generate` will need it/,
    );
    expect(existsSync(at('a/tokenizer'))).toBe(false);
  });

  it('writes as a folder of Hugging Face says, up to the end of the text', async () => {
    const folder = folderWith(sentencePiece(), { eos_token: '</s>' });
    saveModel(folder, 704);
    const words = ['generate', '--model', folder, '--prompt', 'The roof 日本', ...onCpu];
    const greedy = await runMain([...words, '--tokens', '20']);
    expect(greedy).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^The roof 日本.*\n$/s) });
    expect((await runMain([...words, '--tokens', '20', '--seed', '9'])).stdout).toBe(greedy.stdout);

    // Every token ends the text: the first one is the last.
    const stop = Array.from({ length: 704 }, (_, id) => id);
    const config = { do_sample: true, temperature: 1, max_new_tokens: 20, eos_token_id: stop };
    writeFileSync(join(folder, 'generation_config.json'), JSON.stringify(config));
    expect((await runMain(words)).stdout.length).toBeLessThan(greedy.stdout.length);
    expect((await runMain(words)).exitCode).toBe(0);
  });

  it('refuses a folder whose tokenizer is not there, or is another model’s', async () => {
    const folder = folderWith(sentencePiece());
    saveModel(folder, 600);
    const misfit = await runMain(['generate', '--model', folder, ...onCpu]);
    expect(misfit.exitCode).toBe(2);
    expect(misfit.stderr.replaceAll('\n', ' ')).toContain('has 701 tokens, more than the 600 of');
    rmSync(join(folder, 'tokenizer.json'));
    const without = await runMain(['generate', '--model', folder, ...onCpu]);
    expect(without.stderr.replaceAll('\n', ' ')).toContain(
      'has no tokenizer.json: name its tokenizer by --tokenizer',
    );
    mkdirSync(join(folder, 'empty'));
    const bytes = ['--tokenizer', 'bytes', '--prompt', 'a', '--tokens', '1'];
    expect((await runMain(['generate', '--model', folder, ...bytes, ...onCpu])).exitCode).toBe(0);
    const none = await runMain([
      'generate',
      '--model',
      join(folder, 'empty'),
      '--tokenizer',
      'bytes',
      ...onCpu,
    ]);
    expect(none).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('config.json cannot be read'),
    });
  });

  it.each(['0', '1.01', ' ', 'NaN'])('refuses --top-p %j before it opens anything', async (share) => {
    const { exitCode, stdout, stderr } = await runMain([
      ...['generate', '--checkpoint', 'nowhere', '--top-p', share],
    ]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(`--top-p wants a share above 0 and at most 1, not '${share}'.`);
  });
});
