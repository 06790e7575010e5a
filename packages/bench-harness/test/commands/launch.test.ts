import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

describe('roofline launch', () => {
  it('starts ranks, and hands on what stands after -- as it is written', async () => {
    const script = join(temporaryFolder(), 'ranks.mjs');
    writeFileSync(
      script,
      'console.log(process.env.RANK, process.env.WORLD_SIZE, process.argv.slice(2).join("|"));',
    );
    const words = [
      'launch',
      '--nproc',
      '2',
      '--',
      script,
      '--steps',
      '1e3',
      '007',
      '--nproc',
      '9',
      '--',
      'x',
    ];
    const { exitCode, stdout } = await runCli(words);
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split('\n').sort()).toEqual(
      [0, 1].map((rank) => `[rank ${rank}] ${rank} 2 --steps|1e3|007|--nproc|9|--|x`),
    );
  });

  it.each([
    ['launch', '--nproc is missing'],
    ['launch --nproc 2', 'no script'],
    ['launch --nproc 0 -- x.js', "--nproc wants a whole number of at least 1, not '0'."],
    ['launch --nprocs 2 -- x.js', 'Did you mean --nproc?'],
  ])('%s is wrong usage', async (line, message) => {
    const { exitCode, stderr } = await runCli(line.split(' '));
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
    expect(stderr).not.toContain('roofline-launch');
  });
});
