import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const words = [
  'plan',
  '--size',
  '8b',
  '--context',
  '8192',
  '--gpus',
  '64',
  '--nodes-of',
  '8',
  '--link',
  '50GB/s',
];

describe('roofline plan', () => {
  it('prints layouts as JSON, the best first, with memory, communication and bounds', async () => {
    const { exitCode, stdout } = await runMain([...words, '--json']);
    expect(exitCode).toBe(0);
    const { layouts, device, measured } = JSON.parse(stdout);
    expect(layouts[0]).toMatchObject({ name: 'fully sharded', axes: { shard: 64 }, fits: true });
    expect(layouts.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['data parallel', 'ZeRO-1', 'hybrid sharded', 'tensor parallel']),
    );
    expect(layouts[0].bound.leastTokens).toBeGreaterThan(1000);
    expect(device.links).toMatchObject({ perNode: 8, outsideBytesPerSecond: 50e9 });
    expect(measured.length).toBeGreaterThan(50);
  });

  it('prints tables and findings, and writes a report with plots', async () => {
    const out = join(temporaryFolder(), 'plan');
    const { exitCode, stdout } = await runMain([
      ...words,
      '--recompute',
      'block',
      '--dtype',
      'bf16',
      '--out',
      out,
    ]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('The fastest that fits is fully sharded');
    const plots = ['takeover', 'utilization-by-gpus', 'step-by-gpus'].map((id) => `plots/${id}.svg`);
    expect(['report.html', ...plots].filter((file) => !existsSync(join(out, file)))).toEqual([]);
  });

  it('plans for a model of a config, without weights', async () => {
    const folder = join(temporaryFolder(), 'some-model');
    mkdirSync(folder);
    const sizes = {
      hidden_size: 2048,
      intermediate_size: 11_008,
      num_hidden_layers: 36,
      vocab_size: 151_936,
    };
    const heads = { num_attention_heads: 16, num_key_value_heads: 2, max_position_embeddings: 32_768 };
    const config = { model_type: 'qwen2', ...sizes, ...heads, hidden_act: 'silu', tie_word_embeddings: true };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    const model = ['plan', '--model', folder, '--gpus', '4', '--context', '4096'];
    const { exitCode, stdout } = await runMain([...model, '--json']);
    expect(exitCode).toBe(0);
    const layouts = JSON.parse(stdout).layouts as { name: string; obstacle?: string | null }[];
    expect(layouts.map(({ name }) => name)).toContain('fully sharded');
    // Of four ranks two each share a head of keys.
    expect(layouts.find(({ name }) => name === 'tensor parallel')).not.toHaveProperty('obstacle');
    expect((await runMain([...model, '--size', '8b'])).stderr).toContain(
      '--model and --size both say which model',
    );
  });

  it('plans for a sequence that all GPUs share', async () => {
    const line = 'plan --size 8b --context 131072 --sequences 1 --gpus 8 --recompute block --logits chunked';
    const { exitCode, stdout } = await runMain(line.split(' '));
    expect(exitCode).toBe(0);
    expect(stdout).toContain('1 × 131072 tokens for all');
    expect(stdout).toContain('The fastest that fits is sharded, sequences divided');
  });

  it.each([
    ['plan --batch 2 --sequences 8', '--batch and --sequences both say how many sequences a step has'],
    ['plan --gpus 16 --nodes-of 8', 'say what each of them sends there by --link'],
    ['plan --size small,medium', 'one size at a time'],
    ['plan --link 50', '--link wants a number of B/s, such as 50GB/s, not '],
    ['plan --peak 900TB/s', '--peak wants a number of FLOP/s, such as 50GFLOP/s'],
    [
      'plan --dtype float16',
      'No step of NVIDIA H200 was measured that is compiled, with flash attention, in float16',
    ],
    ['plan --records /does/not/exist', '/does/not/exist does not exist'],
    ['plan --machine a100', "Unknown machine 'a100'"],
  ])('%s ends with 2: %s', async (line, message) => {
    const { exitCode, stderr } = await runMain(line.split(' '));
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(message);
    expect(exitCode).toBe(2);
  });
});
