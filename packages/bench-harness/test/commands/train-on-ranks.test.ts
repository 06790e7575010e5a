import { createRequire } from 'node:module';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isStep, logPath, readTrainLog } from '../../src/train/train-log.ts';
import { endOf, runCli, startCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const collectives = dirname(createRequire(import.meta.url).resolve('@roofline/collectives/package.json'));
const hasGloo = existsSync(join(collectives, 'native/build/libroofline_gloo.so'));
const note = hasGloo ? '' : ' (skipped: Gloo is not installed)';
/** How often a rank is killed; each time costs as long as its start. */
const kills = Number(process.env['ROOFLINE_KILLS'] ?? 1);
const mode = process.env['ROOFLINE_KILLS_MODE'] ?? 'fsdp';

const toy = [
  ...['--d-model', '16', '--d-ff', '16', '--layers', '1', '--heads', '2', '--context', '16', '--batch', '4'],
  ...['--nproc', '2', '--mode', mode, '--steps', '100000', '--save-every', '4', '--eval-every', '6'],
];

const lossesIn = (folder: string) =>
  readTrainLog(folder)
    .filter(isStep)
    .map(({ step, loss, gradientNorm }) => [step, loss, gradientNorm] as const);

async function untilSteps(folder: string, count: number): Promise<void> {
  while (!existsSync(logPath(folder)) || lossesIn(folder).length < count) await setTimeout(5);
}

/** The process of a rank, once the command has started it. */
async function pidOfRank(parent: number, rank: number): Promise<number> {
  for (;;) {
    const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim();
    const pid = children.split(' ').find((child) => environmentOf(child).includes(`RANK=${rank}`));
    if (pid) return Number(pid);
    await setTimeout(1);
  }
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return []; // It has ended.
  }
}

describe.skipIf(!hasGloo || process.platform !== 'linux')(`roofline train on two ranks${note}`, () => {
  // Several trainings of two processes, each of which has to start.
  it('ends with a killed rank, goes on to the last bit, saves once by Ctrl-C, and stops where it diverges', async () => {
    const folder = join(temporaryFolder(), 'a');
    const text = join(folder, '..', 'text.txt');
    writeFileSync(text, 'The roof is what the hardware allows. '.repeat(20));
    const resume = ['train', '--resume', folder, '--device', 'cpu'];
    const made: (readonly [number, number | null, number | null])[] = [];
    const keepsWhatWasMade = () => {
      for (const [step, ...values] of lossesIn(folder)) {
        if (made[step]) expect([step, ...values]).toEqual(made[step]);
        made[step] = [step, ...values];
      }
    };
    for (let kill = 0; kill < kills; kill++) {
      const isBegun = existsSync(folder);
      const child = startCli(
        isBegun ? resume : ['train', '--data', text, '--out', folder, '--device', 'cpu', ...toy],
      );
      const from = isBegun ? lossesIn(folder).length : 0;
      // Somewhere between two saves, whose steps are made again.
      await untilSteps(folder, kills === 1 ? 6 : from + Math.floor(Math.random() * 12) - 4);
      process.kill(await pidOfRank(child.pid!, kill % 2 === 0 ? 1 : 0), 'SIGKILL');
      const { exitCode, stderr } = await endOf(child);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringMatching(/Rank [01] ended with SIGKILL/),
      });
      expect(stderr).toMatch(/The checkpoint of step \d+, .* is whole\. .*--resume/s);
      keepsWhatWasMade();
    }

    const child = startCli(resume);
    await untilSteps(folder, made.length + 2);
    child.kill('SIGINT');
    const { exitCode, stderr } = await endOf(child);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 130,
      stderr: expect.stringMatching(/Interrupted after step \d+\. .* train --resume .*goes on/s),
    });
    keepsWhatWasMade();
    const last = `step-${String(lossesIn(folder).length).padStart(7, '0')}.safetensors`;
    expect(
      readdirSync(folder)
        .filter((name) => name.endsWith('.safetensors'))
        .at(-1),
    ).toBe(last);

    const diverged = await runCli([...resume, '--lr', '1e30', '--clip', '0', '--warmup', '0']);
    expect(diverged.exitCode).toBe(1);
    expect(diverged.stderr).toMatch(/Step \d+: the (loss|norm of the gradients) is (NaN|-?Infinity)/);
    expect(diverged.stderr).toContain('The training has stopped, and nothing of it was saved.');
  }, 900_000);

  it('shards over halves of four ranks, and goes on in fours, in pairs and alone', async () => {
    const folder = join(temporaryFolder(), 'a');
    const text = join(folder, '..', 'text.txt');
    writeFileSync(text, 'The roof is what the hardware allows. '.repeat(20));
    const size = ['--d-model', '16', '--d-ff', '16', '--layers', '2', '--heads', '2', '--context', '16'];
    const begun = ['--data', text, '--out', folder, '--batch', '8', '--steps', '4', '--save-every', '2'];
    const ends = async (args: readonly string[]) => {
      const { exitCode, stderr } = await runCli(['train', ...args, '--device', 'cpu']);
      expect(exitCode).toBe(0);
      return { stderr, losses: lossesIn(folder) };
    };
    const whole = await ends([...begun, ...size, '--mode', 'hybrid', '--nproc', '4', '--keep', '5']);
    expect(whole.stderr).toMatch(/4 ranks, .*--mode hybrid/);
    expect(whole.losses).toHaveLength(4);
    const resume = ['--resume', join(folder, 'step-0000002.safetensors')];
    expect((await ends(resume)).losses).toEqual(whole.losses);
    for (const others of [
      ['--nproc', '2', '--mode', 'fsdp'],
      ['--nproc', '1'],
    ]) {
      const { losses } = await ends([...resume, ...others]);
      for (const [i, values] of losses.entries())
        for (const [j, value] of values.entries()) expect(value).toBeCloseTo(whole.losses[i]![j]!, 4);
    }
  }, 900_000);
});
