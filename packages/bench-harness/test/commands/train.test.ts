import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describeTraining } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { isStep, logPath, readTrainLog } from '../../src/train/train-log.ts';
import { endOf, runCli, startCli } from '../fixtures/run-cli.ts';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const toy = [
  ...['--d-model', '16', '--d-ff', '16', '--layers', '1', '--heads', '2', '--context', '16'],
  ...['--batch', '4', '--device', 'cpu'],
];

/** A folder with a text; gives paths in it. */
function place(): (name: string) => string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'text.txt'), 'The roof is what the hardware allows. '.repeat(20));
  return (name) => join(folder, name);
}

const begin = (at: (name: string) => string, out: string, ...words: string[]) => [
  ...['train', '--data', at('text.txt'), '--out', at(out), ...toy, ...words],
];

const lossesIn = (folder: string) =>
  readTrainLog(folder)
    .filter(isStep)
    .map(({ step, loss, learningRate }) => [step, loss, learningRate]);
const checkpointsIn = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.safetensors'));

describe('roofline train', () => {
  it('trains, logs, evaluates, saves, and goes on to the last bit', async () => {
    const at = place();
    const words = ['--steps', '12', '--eval-every', '5', '--save-every', '5', '--accumulate', '2', '--json'];
    const { exitCode, stdout } = await runCli(begin(at, 'whole', ...words));
    expect(exitCode).toBe(0);
    const whole = JSON.parse(stdout) as Record<string, unknown>;
    expect(whole).toMatchObject({
      isFinished: true,
      step: 12,
      steps: 12,
      checkpoint: at('whole/step-0000012.safetensors'),
    });
    expect(checkpointsIn(at('whole'))).toEqual(['step-0000010.safetensors', 'step-0000012.safetensors']);
    const log = readTrainLog(at('whole'));
    expect(log.flatMap((line) => (isStep(line) ? [] : [line.step]))).toEqual([5, 10, 12]);
    expect(lossesIn(at('whole'))).toHaveLength(12);
    const page = readFileSync(at('whole/report.html'), 'utf8');
    expect(page).toContain('Loss by step');
    expect(readdirSync(at('whole')).some((name) => name.startsWith('events.out.tfevents.'))).toBe(true);

    // The first half, with the schedule of the whole, from a file of flags; then the rest.
    writeFileSync(at('run.yaml'), 'steps: 7\nschedule-steps: 12\neval-every: 5\naccumulate: 2\n');
    const half = await runCli(begin(at, 'half', '--config', at('run.yaml')));
    expect(half).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`Checkpoint: ${at('half/step-0000007.safetensors')}`),
    });
    expect(half.stderr).toMatch(/The cosine schedule stays one of 12 steps: training ends before/);
    const rest = await runCli(['train', '--resume', at('half'), '--steps', '12', '--device', 'cpu']);
    expect(rest.stderr).toMatch(/Going on from step 7, with --steps 12 in place of 7\./);
    expect(lossesIn(at('half'))).toEqual(lossesIn(at('whole')));
    const [ours, theirs] = ['whole', 'half'].map((name) =>
      readFileSync(at(`${name}/step-0000012.safetensors`)),
    );
    // Only the settings differ, which the header holds.
    expect(ours!.subarray(-40_000).equals(theirs!.subarray(-40_000))).toBe(true);
  });

  it.skipIf(process.platform === 'win32')('goes on from whatever kill -9 leaves', async () => {
    const at = place();
    const words = ['--steps', '60', '--save-every', '3', '--eval-every', '10', '--execution', 'eager'];
    expect((await runCli(begin(at, 'whole', ...words))).exitCode).toBe(0);
    for (let kill = 0; kill < 4; kill++) {
      const isBegun = existsSync(at('killed')) && checkpointsIn(at('killed')).length > 0;
      const child = startCli(
        isBegun ? ['train', '--resume', at('killed'), '--device', 'cpu'] : begin(at, 'killed', ...words),
      );
      const ended = once(child, 'exit');
      // Somewhere in the steps that it makes before it is killed.
      const from = isBegun ? lossesIn(at('killed')).length : 0;
      const lines = from + 1 + Math.floor(Math.random() * 8);
      while (
        child.exitCode === null &&
        !(existsSync(logPath(at('killed'))) && lossesIn(at('killed')).length >= lines)
      )
        await setTimeout(1);
      child.kill('SIGKILL');
      await ended;
    }
    expect((await runCli(['train', '--resume', at('killed'), '--device', 'cpu'])).exitCode).toBe(0);
    expect(lossesIn(at('killed'))).toEqual(lossesIn(at('whole')));
    const [ours, theirs] = ['whole', 'killed'].map((name) =>
      readFileSync(at(`${name}/step-0000060.safetensors`)),
    );
    expect(ours!.equals(theirs!)).toBe(true);
  });

  it.skipIf(process.platform === 'win32')('saves where it is interrupted', async () => {
    const at = place();
    const child = startCli(begin(at, 'a', '--steps', '100000', '--save-every', '0', '--execution', 'eager'));
    const ended = endOf(child);
    while (!existsSync(logPath(at('a'))) || lossesIn(at('a')).length < 3) await setTimeout(5);
    child.kill('SIGINT');
    const { exitCode, stderr } = await ended;
    expect({ exitCode, stderr }).toEqual({
      exitCode: 130,
      stderr: expect.stringMatching(/Interrupted after step \d+\. .* train --resume .*goes on/s),
    });
    const made = lossesIn(at('a')).length;
    expect(describeTraining(at(`a/step-${String(made).padStart(7, '0')}.safetensors`)).step).toBe(made);
  });

  it('stops where the loss is not finite, with the step and the checkpoint before', async () => {
    const at = place();
    const { exitCode, stderr } = await runCli(
      begin(
        at,
        'a',
        '--steps',
        '50',
        '--lr',
        '1e30',
        '--warmup',
        '0',
        '--clip',
        '0',
        '--execution',
        'eager',
        '--save-every',
        '1',
      ),
    );
    expect(exitCode).toBe(1);
    const [, step] = /Step (\d+): the (?:loss|norm of the gradients) is NaN/.exec(stderr)!;
    expect(stderr).toContain('The training has stopped, and nothing of it was saved.');
    expect(stderr).toMatch(new RegExp(`The checkpoint of step ${step}, .* is whole`));
    expect(checkpointsIn(at('a')).at(-1)).toBe(`step-${step!.padStart(7, '0')}.safetensors`);
    expect(lossesIn(at('a')).at(-1)![0]).toBe(Number(step));
    expect(existsSync(at('a/report.html'))).toBe(true);
  });

  it.skipIf(process.platform !== 'linux')(
    'that finds no room says so, and names the checkpoint before',
    async () => {
      const at = place();
      const words = ['--execution', 'eager', '--steps', '3', '--save-every', '0'];
      expect((await runCli(begin(at, 'a', ...words))).exitCode).toBe(0);
      const again = ['train', '--resume', at('a'), '--steps', '6', '--device', 'cpu'];
      const limited = startCli(again, {}, ['sh', '-c', 'ulimit -f 40; exec "$@"', 'sh']);
      const { exitCode, stderr } = await endOf(limited);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringMatching(/EFBIG.*Make room/s),
      });
      expect(stderr).toMatch(/The checkpoint of step 3, .*step-0000003.safetensors, is whole/);
      expect((await runCli(again)).exitCode).toBe(0);
    },
  );

  it('names a damaged checkpoint and the one before, from which it goes on', async () => {
    const at = place();
    const words = ['--execution', 'eager', '--steps', '6', '--save-every', '3'];
    await runCli(begin(at, 'a', ...words));
    const whole = lossesIn(at('a'));
    truncateSync(at('a/step-0000006.safetensors'), 5000);
    const torn = await runMain(['train', '--resume', at('a'), '--steps', '8']);
    expect(torn.exitCode).toBe(2);
    expect(torn.stderr.replaceAll('\n', ' ')).toContain(`is cut off or overlong`);
    expect(torn.stderr.replaceAll('\n', ' ')).toContain(
      `Go on from the one before, ${at('a/step-0000003.safetensors')}.`,
    );
    const resumed = await runCli(['train', '--resume', at('a/step-0000003.safetensors'), '--device', 'cpu']);
    expect(resumed).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('kept as step-0000006.safetensors.old'),
    });
    expect(lossesIn(at('a'))).toEqual(whole);
  });

  it.each<[words: string[], message: string]>([
    [['--out', 'b'], '--data is needed'],
    [['--data', 'text.txt'], '--out is needed'],
    [['--data', 'no.txt', '--out', 'b'], 'no.txt does not exist'],
    [['--data', 'empty.txt', '--out', 'b'], 'empty.txt is empty'],
    [['--data', 'folder', '--out', 'b'], 'is no regular file'],
    [['--data', 'text.txt', '--out', 'b', '--vocab', '5'], '--vocab 5 is less than the vocabulary'],
    [['--data', 'text.txt', '--out', 'b', '--lr', '0'], '--lr wants a number above 0'],
    [
      ['--data', 'text.txt', '--out', 'b', '--min-lr', '-1'],
      "--min-lr wants a number of at least 0, not '-1'",
    ],
    [
      ['--data', 'text.txt', '--out', 'b', '--validation', '1'],
      '--validation wants a share from 0 to below 1',
    ],
    [
      ['--data', 'text.txt', '--out', 'b', '--schedule', 'cosin'],
      "Unknown schedule 'cosin'. Did you mean cosine?",
    ],
    [['--data', 'text.txt', '--out', 'text.txt'], 'is no folder'],
    [['--resume', 'folder'], 'holds no checkpoint'],
    [['--resume', 'text.txt'], 'is no safetensors file'],
    [['--config', 'bad.yaml', '--out', 'b'], 'there is no flag --stepz'],
    [['--config', 'list.yaml', '--out', 'b'], 'steps wants one value'],
    [['--config', 'none.yaml', '--out', 'b'], 'cannot be read'],
  ])('%j is wrong usage', async (words, message) => {
    const at = place();
    writeFileSync(at('empty.txt'), '');
    writeFileSync(at('bad.yaml'), 'stepz: 3\n');
    writeFileSync(at('list.yaml'), 'steps: [3, 4]\n');
    mkdirSync(at('folder'));
    const names = ['b', 'text.txt', 'no.txt', 'empty.txt', 'folder', 'bad.yaml', 'list.yaml', 'none.yaml'];
    const placed = words.map((word) => (names.includes(word) ? at(word) : word));
    const { exitCode, stderr } = await runMain(['train', '--device', 'cpu', ...placed]);
    expect(stderr.replaceAll('\n', ' ')).toContain(message);
    expect(exitCode).toBe(2);
    expect(existsSync(at('b'))).toBe(false);
  });
});

describe('roofline generate', () => {
  it('goes on with a prompt, the same for a seed', async () => {
    const at = place();
    await runCli(begin(at, 'a', '--steps', '150', '--lr', '1e-2', '--save-every', '0'));
    const words = [
      'generate',
      '--checkpoint',
      at('a'),
      '--prompt',
      'The roof',
      '--tokens',
      '40',
      '--device',
      'cpu',
    ];
    const { exitCode, stdout } = await runCli(words);
    expect(exitCode).toBe(0);
    expect(stdout.startsWith('The roof')).toBe(true);
    expect(stdout.endsWith('\n')).toBe(true);
    expect(stdout.length).toBeGreaterThanOrEqual(45);
    expect((await runCli([...words, '--seed', '0'])).stdout).toBe(stdout);
    expect((await runCli([...words, '--seed', '1'])).stdout).not.toBe(stdout);
    // A checkpoint by its own name, moved away from its folder.
    copyFileSync(at('a/step-0000150.safetensors'), at('moved.safetensors'));
    expect(
      (await runCli(['generate', '--checkpoint', at('moved.safetensors'), ...words.slice(3)])).stdout,
    ).toBe(stdout);
  });

  it.each<[words: string[], message: string]>([
    [[], 'Either --checkpoint or --model is needed'],
    [['--checkpoint', 'a', '--model', 'b'], 'Either --checkpoint or --model is needed'],
    [['--checkpoint', 'a', '--dtype', 'float32'], '--dtype is of --model'],
    [['--model', 'nowhere'], '--model nowhere is no folder'],
    [['--checkpoint', 'nowhere'], 'cannot be opened'],
    [['--checkpoint', '.', '--tokens', '0'], '--tokens wants a whole number of at least 1'],
  ])('%j is wrong usage', async (words, message) => {
    const { exitCode, stderr } = await runMain(['generate', ...words]);
    expect(stderr.replaceAll('\n', ' ')).toContain(message);
    expect(exitCode).toBe(2);
  });
});
