import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endOf, runCli, startCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** A model that trains in milliseconds. */
const model = '--d-model 16 --d-ff 32 --layers 1 --heads 2 --vocab 50 --context 8'.split(' ');
/** What it goes by: two models of one folder must not share a name. */
const name = 'custom vocab=50 d-model=16 d-ff=32 layers=1 heads=2';
const quick = [...model, '--device', 'cpu', '--warmup', '1'];

describe('roofline e2e on the CPU', () => {
  let root: string;
  let environment: NodeJS.ProcessEnv;
  /** A sweep whose records stand in the folder `json`, which tests may read. */
  let measured: Awaited<ReturnType<typeof runCli>>;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'roofline-e2e-'));
    environment = { XDG_CACHE_HOME: join(root, 'cache'), ROOFLINE_PYTHON: '' };
    measured = await e2e('--out', join(root, 'json'), '--json');
  });
  afterAll(() => rmSync(root, { recursive: true }));
  const e2e = (...args: string[]) => runCli(['e2e', ...quick, '--steps', '3', ...args], environment);

  it('prints JSON and nothing else to stdout, and keeps records and ceilings', () => {
    const { exitCode, stdout, stderr } = measured;
    expect(stderr).toContain(`[3/3] ${name} · context 8 · batch 4 · train-step · float32`);
    expect(exitCode).toBe(0);
    const { rows, environment: described, ceilings } = JSON.parse(stdout);
    expect(rows.map((row: { mode: string }) => row.mode)).toEqual([
      'forward',
      'forward-backward',
      'train-step',
    ]);
    for (const row of rows) {
      expect(row).toMatchObject({ status: 'ok', size: name, context: 8, batch: 4 });
      expect(row.medianMs).toBeGreaterThan(0);
      expect(row.roofShare).toBeGreaterThan(0);
      expect(row.peakBytes).toBeGreaterThan(0);
    }
    expect(rows[2].loss).toBeCloseTo(Math.log(50), 0);
    expect(described.device.type).toBe('cpu');
    expect(ceilings.matmulFlopsPerSecond.float32).toBeGreaterThan(1e9);
    expect(existsSync(join(root, 'cache', 'roofline', 'ceilings.json'))).toBe(true);
    expect(
      readFileSync(join(root, 'json', 'results.jsonl'), 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(3);
  });

  it('says below the table that other processes used the machine while cells were measured', async () => {
    const file = join(root, 'json', 'results.jsonl');
    const records = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { otherWork: { busyCores: number; cores: number } | null });
    if (process.platform === 'linux') for (const { otherWork } of records) expect(otherWork).not.toBeNull();
    const busy = join(root, 'busy');
    mkdirSync(busy);
    const lines = records.map((record, i) =>
      JSON.stringify({ ...record, otherWork: { busyCores: i === 1 ? 3 : 0, cores: 4 } }),
    );
    writeFileSync(join(busy, 'results.jsonl'), `${lines.join('\n')}\n`);
    // All cells are there.
    const { stdout } = await e2e('--out', busy);
    expect(stdout.replaceAll('\n', ' ')).toContain(
      `The machine was busy while 1 of 3 cells were measured (${name} · context 8 · batch 4 · forward-backward · float32): ` +
        'other processes took up to 3.0 of its 4 cores, so that times may be too long.',
    );
    const { busyMachine } = JSON.parse((await e2e('--out', busy, '--json')).stdout) as {
      busyMachine: string;
    };
    expect(busyMachine).toContain('3.0 of its 4 cores');
  });

  it('resumes, and refuses other settings', async () => {
    const out = join(root, 'resume');
    await e2e('--mode', 'forward', '--out', out);
    const more = await e2e('--mode', 'forward', '--context', '8,12', '--out', out);
    expect(more.stderr).toContain('1 of 2 cells were measured before and are kept.');
    expect(more.stdout).toContain('12');
    const other = await e2e('--mode', 'forward', '--seed', '7', '--out', out);
    expect(other).toMatchObject({ exitCode: 2, stdout: '' });
    expect(other.stderr).toContain('seed 0 there, 7 asked');
  });

  it('makes a row of a cell that runs out of memory and measures the rest', async () => {
    const { exitCode, stdout } = await e2e(
      ...'--mode forward --batch 100000000000,4 --json --out'.split(' '),
      join(root, 'memory'),
    );
    const { rows } = JSON.parse(stdout);
    expect(rows.map((row: { status: string }) => row.status)).toEqual(['out-of-memory', 'ok']);
    expect(rows[0].error).toContain('out of memory');
    expect(exitCode).toBe(3);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('keeps what was measured on %s', async (signal) => {
    const out = join(root, signal);
    // The second cell would take minutes.
    const sweep = ['--mode', 'forward', '--batch', '1,20000', '--steps', '1000', '--out', out];
    const child = startCli(['e2e', ...quick, ...sweep], environment);
    child.stderr!.on('data', (text: Buffer) => text.includes('[1/2]') && child.kill(signal));
    const { exitCode, stderr } = await endOf(child);
    expect(stderr).toMatch(/Interrupted: 1 of 2 cells are kept.*--out/);
    expect(exitCode).toBe(130);
    expect(existsSync(join(out, '.lock'))).toBe(false);
  });

  it('goes on with the file that --force-new began without it', async () => {
    const out = join(root, 'forced');
    const sweep = ['--mode', 'forward', '--batch', '1,20000', '--steps', '1000', '--out', out, '--force-new'];
    const child = startCli(['e2e', ...quick, ...sweep], environment);
    child.stderr!.on('data', (text: Buffer) => text.includes('[1/2]') && child.kill('SIGINT'));
    const { stderr } = await endOf(child);
    expect(stderr).toMatch(/1 of 2 cells are kept.* without --force-new, and with --out/);
  });

  it('keeps what was measured when its messages are no longer read', async () => {
    const out = join(root, 'unread');
    const sweep = ['--mode', 'forward', '--batch', '1,2,20000', '--steps', '1000', '--out', out];
    const child = startCli(['e2e', ...quick, ...sweep], environment);
    child.stderr!.on('data', (text: Buffer) => text.includes('[1/3]') && child.stderr!.destroy());
    const [stdout, [exitCode]] = await Promise.all([text(child.stdout!), once(child, 'exit')]);
    expect(exitCode).toBe(130);
    expect(stdout).toMatch(/forward/);
    expect(readFileSync(join(out, 'results.jsonl'), 'utf8').trim().split('\n')).toHaveLength(2);
    expect(existsSync(join(out, '.lock'))).toBe(false);
  });

  it('measures all of it even if the table is not read', async () => {
    const out = join(root, 'headless');
    const child = startCli(['e2e', ...quick, '--mode', 'forward', '--steps', '3', '--out', out], environment);
    child.stdout!.destroy();
    const [stderr, [exitCode]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
    expect(stderr).not.toMatch(/EPIPE|^ {4}at /m);
    expect(exitCode).toBe(0);
    expect(existsSync(join(out, '.lock'))).toBe(false);
  });

  it.runIf(existsSync('/dev/full'))('says that its output could not be written', async () => {
    const full = ['sh', '-c', 'exec "$@" > /dev/full', 'sh'];
    const { exitCode, stderr } = await endOf(startCli(['model'], environment, full));
    expect(stderr).toMatch(/^roofline: the output could not be written \(ENOSPC[^)]*\)\.\n$/);
    expect(exitCode).toBe(1);
  });

  it.runIf(process.platform === 'linux')(
    'ends with what it has on a full disk, and goes on later',
    async () => {
      const out = join(root, 'full');
      const results = join(out, 'results.jsonl');
      await e2e('--mode', 'forward', '--out', out);
      // A limit of the file's size, in blocks of 512 bytes, takes a part of the second record and no more.
      const blocks = Math.floor(statSync(results).size / 512) + 2;
      const sweep = ['e2e', ...quick, '--steps', '3', '--out', out];
      const limited = await endOf(
        startCli([...sweep, '--json'], environment, ['sh', '-c', `ulimit -f ${blocks}; exec "$@"`, 'sh']),
      );
      expect(limited.stderr).toMatch(
        /Stopped after 2 of 3 cells: .*results\.jsonl takes no more records \(EFBIG.*--out/,
      );
      expect(limited.stderr).not.toMatch(/^ {4}at /m);
      const { rows, writeError } = JSON.parse(limited.stdout);
      expect(rows.map(({ mode }: { mode: string }) => mode)).toEqual(['forward', 'forward-backward']);
      expect(writeError).toContain('takes no more records');
      expect(limited.exitCode).toBe(1);
      expect(readFileSync(results, 'utf8')).toMatch(/^[^\n]+\n$/);
      const resumed = await endOf(startCli(sweep, environment));
      expect(resumed.stderr).toContain('1 of 3 cells were measured before and are kept.');
      expect(resumed.exitCode).toBe(0);
    },
  );

  it.runIf(process.platform === 'linux')('writes no report on a full disk, and says so', async () => {
    const { exitCode, stderr } = await endOf(
      startCli(['report', join(root, 'json'), '--out', join(root, 'full-report')], environment, [
        'sh',
        '-c',
        'ulimit -f 8; exec "$@"',
        'sh',
      ]),
    );
    expect(stderr).toMatch(/^roofline: EFBIG: .*Make room, or choose another folder by --out\.\n$/);
    expect(exitCode).toBe(1);
  });

  it('contrasts numbers of warm-up steps, and reports them next to the others', async () => {
    const out = join(root, 'warmup');
    const sweep = ['--mode', 'forward', '--warmup', '0,2', '--steps', '2', '--device', 'cpu', '--out', out];
    const study = await runCli(['e2e', ...model, ...sweep, '--json'], environment);
    expect(JSON.parse(study.stdout).rows.map((row: { warmup: number }) => row.warmup)).toEqual([0, 2]);
    const report = await runCli(['report', join(root, 'json'), out, '--out', join(root, 'both')]);
    expect(report.stdout).toMatch(
      /^After 0 warm-up steps a mean step takes .* of its time after 2 warm-up steps\..*\(Warm-up\)$/m,
    );
    expect(readFileSync(join(root, 'both', 'report.html'), 'utf8')).toContain('href="#warmup-warm-up-study"');
    const withPeer = await runCli(['e2e', ...model, ...sweep, '--peer', 'torch'], environment);
    expect(withPeer.exitCode).toBe(2);
    expect(withPeer.stderr).toContain('--peer goes with one number of --warmup steps');
  });

  it('reports and compares', async () => {
    const out = join(root, 'json');
    const report = await runCli(['report', out, '--json']);
    expect(report.exitCode).toBe(0);
    const { files, html } = JSON.parse(report.stdout);
    expect(html).toBe(join(out, 'report.html'));
    expect(files.every((file: string) => existsSync(file))).toBe(true);
    expect(files.map((file: string) => file.slice(out.length + 1))).toEqual(
      expect.arrayContaining(['tables/step-times.tex', 'tables/step-times.csv', 'plots/at-a-glance.svg']),
    );
    const same = await runCli(['compare', out, out, '--fail-over', '1.05', '--json']);
    expect(same.exitCode).toBe(0);
    expect(JSON.parse(same.stdout).rows).toHaveLength(3);
    expect((await runCli(['compare', out, out, '--fail-over', '0.01'])).exitCode).toBe(1);
  });
});

it('roofline model counts parameters', async () => {
  const { stdout, exitCode } = await runCli(['model', '--size', 'small', '--json']);
  expect(exitCode).toBe(0);
  const { parameters, modules } = JSON.parse(stdout);
  expect((parameters / 1e6).toFixed(3)).toBe('128.625');
  expect(Object.values<number>(modules).reduce((a, b) => a + b)).toBe(parameters);
});

it('roofline doctor says what there is, and --device cuda without a GPU what is missing', async () => {
  const doctor = await runCli(['doctor', '--json']);
  const { diagnosis, device } = JSON.parse(doctor.stdout);
  expect(device.type).toMatch(/cpu|cuda/);
  expect(diagnosis.map((entry: { component: string }) => entry.component)).toContain('GPU');
  if (device.type === 'cuda') return;
  const cuda = await runCli(['e2e', '--size', 'tiny', '--device', 'cuda', '--out', temporaryFolder()]);
  expect(cuda).toMatchObject({ exitCode: 2, stdout: '' });
  expect(cuda.stderr).toMatch(/no usable NVIDIA GPU.*\n.*missing/);
});

it.each(['e2e', 'memory', 'demo'])(
  'roofline %s leaves no folder behind where there is no such device',
  async (command) => {
    const out = join(temporaryFolder(), 'below', 'results');
    const { exitCode, stderr } = await runCli([command, '--device', 'cuda:99', '--out', out]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(/GPU/) });
    expect(existsSync(dirname(out))).toBe(false);
  },
);
