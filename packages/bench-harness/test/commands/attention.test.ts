import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { torchPython } from '../fixtures/torch.ts';

const small = '--device cpu --head-dim 8 --sequence 16,32';
const smallest = '--device cpu --head-dim 8 --sequence 16';
const runIn = (folder: string, words: string) => runCli([...words.split(' '), '--out', join(folder, 'out')]);

describe('roofline attention', () => {
  it('times and reports plain, flash and tiled attention on the CPU', async () => {
    const folder = temporaryFolder();
    const words = `attention ${small} --attention plain,flash,tiled --steps 2 --warmup 1 --json`;
    const { exitCode, stdout } = await runIn(folder, words);
    expect(exitCode).toBe(0);
    const { rows, settings } = JSON.parse(stdout);
    expect(settings).toEqual({ warmup: 1, steps: 2, seed: 0 });
    expect(rows.map((row: { attention: string; sequence: number }) => [row.attention, row.sequence])).toEqual(
      [
        ['plain', 16],
        ['flash', 16],
        ['tiled', 16],
        ['plain', 32],
        ['flash', 32],
        ['tiled', 32],
      ],
    );
    for (const row of rows) {
      expect(row.forwardMedianMs).toBeGreaterThan(0);
      expect(row.backwardRoofShare).toBeGreaterThan(0);
      // In a process of its own nothing else holds memory.
      expect(row.beforeBackwardRatio).toBe(1);
    }

    const report = await runCli(['report', join(folder, 'out'), '--out', join(folder, 'report')]);
    expect(report.exitCode).toBe(0);
    expect(existsSync(join(folder, 'report', 'report.html'))).toBe(true);
    for (const ending of ['md', 'tex', 'csv', 'json']) {
      expect(readdirSync(join(folder, 'report', 'tables'))).toContain(`memory-need.${ending}`);
    }
  });

  it('makes a row of a cell that runs out of memory, with what it would have needed', async () => {
    const words = 'attention --device cpu --head-dim 8 --batch 1000000000 --sequence 512 --steps 1 --oom ok';
    const { exitCode, stdout } = await runIn(temporaryFolder(), `${words} --attention plain`);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('OOM');
    expect(stdout).toMatch(/\(TiB\)[^]*\b954\b/);
  });
});

describe('roofline flash', () => {
  const quick = '--dtype float32 --warmup-ms 1 --repeat-ms 2';

  it('times attentions in turn, in the passes asked for', async () => {
    const { exitCode, stdout } = await runIn(
      temporaryFolder(),
      `flash ${small} ${quick} --heads 2 --pass both`,
    );
    expect(exitCode).toBe(0);
    for (const text of ['Attention, in turn', '2 heads', 'Over plain', 'Flash over plain attention']) {
      expect(stdout).toContain(text);
    }
    expect(stdout).not.toContain('backward time');
  });

  it.skipIf(torchPython === null)("names PyTorch's attentions, and says which are not there", async () => {
    const { exitCode, stdout } = await runIn(
      temporaryFolder(),
      `flash ${smallest} ${quick} --peer torch --json`,
    );
    expect(exitCode).toBe(0);
    const { rows } = JSON.parse(stdout);
    const named = (name: string) =>
      rows.filter((row: { implementation: string }) => row.implementation === name);
    expect(named('PyTorch plain')).toHaveLength(3);
    for (const row of named('PyTorch plain')) expect(row.ratio).toBeGreaterThan(0);
    for (const name of ['PyTorch compiled', 'PyTorch FlashAttention', 'PyTorch cuDNN']) {
      expect(named(name)).toHaveLength(3);
      for (const row of named(name)) expect(row.status === 'ok' || row.error.length > 0).toBe(true);
    }
  });
});
