import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { commandEntries } from '../../src/commands/all.ts';
import { EXIT } from '../../src/errors.ts';
import { runCli } from '../fixtures/run-cli.ts';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

describe('wrong usage ends with 2 and says what would be right', () => {
  it.each([
    ['', 'Name a command'],
    ['e3e', "Unknown command 'e3e'. Did you mean e2e?"],
    ['frobnicate', "Unknown command 'frobnicate'."],
    ['e2e --contxt 128', 'Unknown option --contxt. Did you mean --context?'],
    ['e2e --size smal', "Unknown size 'smal'. Did you mean small? Choices: tiny, small"],
    ['e2e --mode forwards', 'Did you mean forward?'],
    ['e2e --dtype float23', 'Did you mean float32?'],
    ['e2e --steps 0', '--steps wants a whole number of at least 1'],
    ['e2e --device cdua', "Unknown device 'cdua'. Did you mean cuda?"],
    ['e2e --peer tensorflow', "Unknown peer 'tensorflow'. Choices: torch, jax."],
    ['e2e --oom never', "Unknown oom 'never'. Choices: ok, report, fail."],
    ['e2e -x', 'Unknown option -x.'],
    ['e2e extra', "`roofline e2e` takes no word 'extra'."],
    ['run', "roofline: Unknown command 'run'.\nTry"],
    ['e2e --batch-size 3', 'roofline: Unknown option --batch-size. Did you mean --batch?\nTry'],
    ['e2e --no-such', 'roofline: Unknown option --such.\nTry'],
    ['--json model', 'roofline: Name the command first: `roofline model --json`.\nTry'],
    ['e2e --seed', '--seed wants a value.'],
    ['profile --peer torch --peer torch', '--peer was given 2 times'],
    ['profile --phase all --phase all', '--phase was given 2 times'],
    ['profile --range a --range b', '--range was given 2 times'],
    ['memory --device cpu --device cuda', '--device was given 2 times'],
    ['bundle', '--out is needed.'],
    ['report', '`roofline report` wants <folders..>.'],
    // What people write elsewhere is understood: the next flag is what is wrong.
    ['e2e --dtype fp16,bf16,fp32,half --steps 0', '--steps wants'],
    ['attention --dtype bf16 --device gpu:1 --seed x', '--seed wants'],
    ['e2e --d-model 64 --heads 2', 'needs --d-ff, --layers too'],
    ['e2e --size tiny --layers 9007199254740991', 'more than can be counted'],
    ['e2e --size tiny --heads 3', 'roofline: --d-model 128 must be a multiple of 2 · --heads = 6: rotary'],
    [
      'e2e --device cpu --size tiny --execution compiled,autotuned',
      'the device is cpu: take compiled there.',
    ],
    ['ddp --dtype half', "Unknown dtype 'float16'. Did you mean bfloat16? Choices: float32, bfloat16."],
    ['model --size small,medium', 'one size at a time'],
    ['report /does/not/exist', '/does/not/exist does not exist'],
    ['overhead --op ad', 'Did you mean add?'],
    ['agree --configurations 0 --wide 0', 'Ask for one of --configurations or --wide'],
    ['attention --attention flahs', 'Did you mean flash?'],
    ['attention --dtype float64', "Unknown dtype 'float64'"],
    ['precision --study accuracy', "--study accuracy is against PyTorch's gradients: add --peer torch"],
    ['flash --sequence 0', '--sequence wants a whole number of at least 1'],
    ['flash --leaderboard --head-dim 128', '--leaderboard is one case: leave out --head-dim.'],
    ['flash --peer-attention cudnn', '--peer-attention is that of a peer: add --peer torch.'],
    [
      'overhead --study ops --size small',
      '--size describes the model that runs under instruments: add instruments to --study',
    ],
    ['overhead --study ops --d-model 64', '--d-model describes the model that runs under instruments'],
    ['precision --study accumulation,loss --size xl', '--size describes the model of accuracy and speed'],
    ['compare only-one', '`roofline compare` wants <before> <after>.\nTry `roofline compare --help`'],
    ['allreduce --op allredcue', 'Did you mean allreduce?'],
    ['allreduce --size 10XB', "--size wants a size such as 10MB, 8M or 4096, not '10XB'"],
    ['allreduce --nproc 2 --size 3', 'allreduce of 3 bytes over 2 ranks leaves no element of float32'],
    ['allreduce --op allgather --nproc 4 -b 8 -e 32', 'allgather of 8 bytes over 4 ranks leaves no element'],
    ['allreduce -b 8', '--begin and --end go together'],
    ['allreduce -b 8 -e 4', '--end 4 lies below --begin 8'],
    ['allreduce -b 8 -e 4M --size 1MB', 'leave out --begin and --end'],
  ])('roofline %s', async (line, message) => {
    const { exitCode, stdout, stderr } = await runMain(line.split(' ').filter(Boolean));
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^ {4}at /m);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  });

  it('roofline doctor breaks what is missing at words, within the width of a terminal', async () => {
    vi.stubEnv('COLUMNS', '80');
    vi.stubEnv('ROOFLINE_PYTHON', '/no/such/interpreter/of/this/machine');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { stdout } = await runMain(['doctor', '--device', 'cpu']);
    const [, remedies] = /^To get what is missing\n([^]*?)\n\n/m.exec(stdout)!;
    const lines = remedies!.split('\n');
    // A path or a command is not broken.
    expect(lines.filter((line) => line.length > 80 && !line.includes('/'))).toEqual([]);
    expect(lines).toContainEqual(expect.stringMatching(/^Python with PyTorch: /));
  });

  it('roofline --help lists all commands in groups, demo and doctor first, within the width of a terminal', async () => {
    vi.stubEnv('COLUMNS', '80');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { stdout } = await runMain(['--help']);
    const lines = stdout.split('\n');
    const titles = lines.filter((line) => /^\S.*:$/.test(line));
    expect(titles).toEqual(['Start here:', 'Train:', 'Measure:', 'Look:', 'Check:', 'Set up:', 'Options:']);
    const listed = lines.flatMap((line) => /^ {2}([a-z0-9]+)/.exec(line)?.[1] ?? []);
    expect(listed.slice(0, 2)).toEqual(['demo', 'doctor']);
    expect(listed.toSorted()).toEqual([...commandEntries.map(({ name }) => name), 'completion'].toSorted());
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('roofline --help lists every exit code', async () => {
    const { stdout } = await runMain(['--help']);
    for (const code of Object.values(EXIT)) expect(stdout).toMatch(new RegExp(`Exit codes:.* ${code} `));
  });

  it('roofline e2e --help says where records go by default', async () => {
    expect((await runMain(['e2e', '--help'])).stdout).toMatch(/--out .*\n.*results\/BENCHMARK-TIME/);
  });

  it.each(['e2e --size tiny', 'demo', 'report results', 'bundle'])(
    'roofline %s with an empty --out, or two',
    async (line) => {
      const empty = await runMain([...line.split(' '), '--out', '']);
      expect(empty).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining("--out wants a path, not ''"),
      });
      const two = await runMain([...line.split(' '), '--out', 'a', '--out', 'b']);
      expect(two).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--out was given 2 times') });
    },
  );

  it.each([
    ['e2e -- --size tiny', '`roofline e2e` takes no words after --'],
    ['report results -- more', '`roofline report` takes no words after --'],
    ['model --json=yes', "--json is a switch: it stands alone, or as --no-json, not with 'yes'."],
    ['e2e --force-new= --size tiny', '--force-new is a switch'],
    ['e2e --no-size', '--size wants a value; leave it out in place of --no-size.'],
    ['model --size constructor', "Unknown size 'constructor'."],
    ['model --constructor 3', 'Unknown option --constructor.'],
    ['report e2e --png=2', '--png is a switch'],
    ['report e2e --bogus', 'Try `roofline report --help`.'],
    ['profile --range= --size tiny', "--range wants a name, such as 'attention.*'"],
    ['launch --nproc=2 -- ', 'There is no script to start.'],
  ])('of words that would be passed over, or taken for others: roofline %s', async (line, message) => {
    const { exitCode, stdout, stderr } = await runMain(line.split(' '));
    expect(stderr).toContain(message);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  });

  it('of words with control codes, which it does not print', async () => {
    const { exitCode, stderr } = await runMain(['report', 'a\u001b[2J\u0007b']);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: 'roofline: a\ufffd[2J\ufffdb does not exist.\n',
    });
  });

  it('an unwritable folder, before anything is measured', async () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    const { exitCode, stderr } = await runMain(['e2e', '--size', 'tiny', '--out', join(file, 'out')]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('Cannot write to') });
  });

  it('a bundle where something of another kind is', async () => {
    const root = temporaryFolder();
    const [file, folder] = [join(root, 'file'), join(root, 'folder.tar.xz')];
    writeFileSync(file, 'kept');
    mkdirSync(folder);
    for (const [out, what] of [
      [file, 'no'],
      [folder, 'a'],
    ] as const) {
      expect(await runMain(['bundle', '--out', out])).toMatchObject({
        exitCode: 2,
        stderr: `roofline: ${out} is ${what} folder. Remove it, or name another by --out.\n`,
      });
    }
    expect(readFileSync(file, 'utf8')).toBe('kept');
  });

  it('a place for snapshots that is not a folder, before anything is measured', async () => {
    const out = temporaryFolder();
    writeFileSync(join(out, 'snapshots'), '');
    const { exitCode, stderr } = await runMain(['memory', '--size', 'tiny', '--out', out]);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringMatching(/Cannot write to .*snapshots: it is no folder/),
    });
  });

  it.runIf(process.platform === 'linux')('a folder below /proc, where mkdir never succeeds', async () => {
    for (const line of ['e2e --size tiny --out /proc/no/such', 'bundle --out /proc/no/such.tar.xz']) {
      const { exitCode, stderr } = await runMain(line.split(' '));
      expect({ exitCode, stderr }).toEqual({
        exitCode: 2,
        stderr: expect.stringContaining('Cannot write to'),
      });
    }
  });

  it('options that leave nothing to measure', async () => {
    const words = 'precision --study dtypes --dtype float32 --device cpu --out'.split(' ');
    const { exitCode, stderr } = await runMain([...words, temporaryFolder()]);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining('nothing to measure'),
    });
  });

  it('a peer that is not there', async () => {
    vi.stubEnv('ROOFLINE_PYTHON', '/does/not/exist/python');
    onTestFinished(() => void vi.unstubAllEnvs());
    const words = ['e2e', '--size', 'tiny', '--peer', 'torch', '--out', temporaryFolder()];
    const { exitCode, stderr } = await runMain(words);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining('Set ROOFLINE_PYTHON'),
    });
  });
});

it('bundle writes no folder with the name of an archive', async () => {
  const { exitCode, stderr } = await runMain(['bundle', '--out', join(tmpdir(), 'roofline.tar.gz')]);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining('it may end in .tar.xz or .tar.zst, or name a folder'),
  });
});

describe('help', () => {
  it.each([
    'allreduce',
    'attention',
    'flash',
    'e2e',
    'overhead',
    'report',
    'compare',
    'model',
    'plan',
    'doctor',
    'agree',
    'demo',
    'bundle',
  ])('of %s has examples', async (command) => {
    const { exitCode, stdout } = await runMain([command, '--help']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`Examples:\n  roofline ${command}`);
    expect(stdout).toContain('--json');
  });

  it('completes values, lists and flags', async () => {
    const complete = async (...words: string[]) =>
      (await runCli(['--get-yargs-completions', 'roofline', ...words])).stdout.split('\n').filter(Boolean);
    expect(await complete('e2e', '--size', 'small,me')).toEqual(['small,medium']);
    expect(await complete('e2e', '--mode', '')).toEqual(['forward', 'forward-backward', 'train-step']);
    expect(await complete('e2e', '--oom', 'r')).toEqual(['report']);
    expect((await complete('e2e', '--d-')).some((flag) => flag.startsWith('--d-model'))).toBe(true);
  });

  it('leaves files to the shell, and says nothing of what is wrong in a line that is not finished', async () => {
    const complete = async (...words: string[]) => runCli(['--get-yargs-completions', 'roofline', ...words]);
    const nothing = { exitCode: 0, stdout: '', stderr: '' };
    expect(await complete('report', '')).toEqual(nothing);
    expect(await complete('e2e', '--out', '')).toEqual(nothing);
    expect(await complete('e2e', '--mode', 'bad', '--dtype', 'bf')).toEqual({
      ...nothing,
      stdout: 'bfloat16\n',
    });
  });

  it('is -h, and the version -V; help shows the choices', async () => {
    expect((await runMain(['-h'])).stdout).toMatch(/^ {2}e2e +\S/m);
    expect((await runMain(['-V'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { stdout } = await runMain(['e2e', '-h']);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('"forward", "forward-backward", "train-step"');
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('"float32", "bfloat16", "float16"');
    const ofRanks = (await runMain(['ddp', '-h'])).stdout.replaceAll(/\s+/g, ' ');
    for (const choices of [
      '"naive", "flat", "overlap", "fsdp", "hybrid", "tensor", "fsdp-tensor", "fsdp-context"',
      '"whole", "sharded"',
      '"gloo", "nccl"',
    ])
      expect(ofRanks).toContain(`[choices: ${choices}]`);
  });

  it.each([
    ['e2e', 'small'],
    ['memory', 'small'],
    ['compile', 'small'],
    ['precision', 'small, on the CPU tiny'],
    ['overhead', 'small, on the CPU tiny'],
    ['ddp', 'tiny'],
    ['model', 'all, in a table'],
    ['plan', '8b'],
  ])('help of %s says which size it takes where none is given: %s', async (command, size) => {
    const { stdout } = await runMain([command, '-h']);
    const [, flag] = /--size (.*?) --d-model/.exec(stdout.replaceAll(/\s+/g, ' '))!;
    expect(flag).toContain(`[default: ${size}]`);
  });
});
