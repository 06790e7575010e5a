import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readResultsFile } from '../../src/records/results-file.ts';
import { runSweep, type SweepOptions } from '../../src/runner/sweep.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { livingOf } from '../fixtures/process-groups.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { toyBenchmark, toyTask, type Behaviour } from '../fixtures/toy-benchmark.ts';

type ToyParameters = SweepOptions<{
  behaviours: Behaviour[];
  steps: number;
  stepMs: number;
  log: string | null;
}>;

function sweep(
  out: string,
  behaviours: Behaviour[],
  options: Partial<ToyParameters> & { settings?: Partial<ToyParameters['parameters']> } = {},
) {
  const { settings, ...rest } = options;
  return runSweep(toyBenchmark, {
    parameters: { behaviours, steps: 1, stepMs: 0, log: null, ...settings },
    environment: toyEnvironment,
    ceilings: null,
    out,
    task: toyTask,
    ...rest,
  });
}

/** A sweep in a program of its own, so that a test can kill it. */
function startToySweep(sweep: { out: string; log: string | null; behaviours: Behaviour[] }) {
  const program = fileURLToPath(new URL('../fixtures/toy-sweep.ts', import.meta.url));
  const words = ['--conditions=roofline-source', program, JSON.stringify(sweep)];
  return spawn(process.execPath, words, { stdio: ['ignore', 'inherit', 'inherit'] });
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

describe('runSweep', () => {
  it('leaves cells that there is no time for, and measures again what no longer counts', async () => {
    const folder = temporaryFolder();
    const behaviours: Behaviour[] = ['succeed', 'succeed', 'succeed'];
    const indices = (records: readonly { parameters: { index?: unknown } }[]) =>
      records.map(({ parameters }) => parameters.index);
    const some = await sweep(folder, behaviours, { hasTimeFor: ({ index }) => index !== 1 });
    expect(indices(some.records)).toEqual([0, 2]);
    expect(some).toMatchObject({ total: 3, interrupted: false });
    const finished: unknown[] = [];
    const all = await sweep(folder, behaviours, {
      isCurrent: ({ parameters }) => parameters['index'] !== 2,
      observer: { cellFinished: ({ parameters }) => finished.push(parameters['index']) },
    });
    expect(finished).toEqual([1, 2]);
    expect(indices(all.records)).toEqual([0, 1, 2]);
  });

  it('makes a row of every ending and goes on', async () => {
    // A small heap is exhausted sooner.
    vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=64');
    onTestFinished(() => void vi.unstubAllEnvs());
    const folder = temporaryFolder();
    const { records, interrupted } = await sweep(
      folder,
      ['print', 'throw', 'exit', 'crash', 'exhaust-heap', 'exhaust-device', 'kill', 'succeed'],
      { timeoutMs: 30_000 },
    );
    // Of every ending, and nothing of a GPU that there is not.
    expect(records.map(({ throttling }) => throttling?.gpu)).toEqual(Array(8).fill(null));
    expect(interrupted).toBe(false);
    expect(records.map(({ parameters, status }) => [parameters['behaviour'], status])).toEqual([
      ['print', 'ok'],
      ['throw', 'failed'],
      ['exit', 'failed'],
      ['crash', 'failed'],
      ['exhaust-heap', 'out-of-memory'],
      ['exhaust-device', 'out-of-memory'],
      ['kill', 'failed'],
      ['succeed', 'ok'],
    ]);
    expect(records[0]!.result).toEqual({ answer: 42, index: 0 });
    expect(records[1]!.error).toMatchObject({ name: 'TypeError', message: 'the toy is broken' });
    expect(records[2]!.error!.message).toContain('exited with code 7');
    expect(records[3]!.error!.message).toContain('SIGABRT');
    expect(records[6]!.error!.message).toContain('SIGKILL');
    expect(readResultsFile(join(folder, 'results.jsonl'))).toEqual(records);
  });

  it('has cells of a GPU follow one another in one process, until one fails or wants its own', async () => {
    const { device } = toyEnvironment;
    const named: Behaviour[] = [
      'name-process',
      'name-process',
      'throw',
      'name-process',
      'alone',
      'name-process',
    ];
    const pidsIn = async (options: Partial<ToyParameters>) => {
      const { records } = await sweep(temporaryFolder(), named, options);
      const pids = records.map(({ result }) => result?.['pid']);
      return { cellsBefore: records.map(({ cellsBefore }) => cellsBefore), pids, kinds: new Set(pids).size };
    };
    const environment = { ...toyEnvironment, device: { ...device, type: 'cuda' as const } };
    const { cellsBefore, pids, kinds } = await pidsIn({ environment, sharesProcess: true });
    expect(cellsBefore).toEqual([undefined, 1, 2, undefined, undefined, undefined]);
    expect(pids[1]).toBe(pids[0]);
    expect(kinds).toBe(1 + 4);
    expect(livingOf(pids.filter((pid) => typeof pid === 'number'))).toEqual([]);
    // Each has its own unless that is asked for, and always on the CPU.
    expect(await pidsIn({ environment })).toMatchObject({ cellsBefore: Array(6), kinds: 6 });
    expect(await pidsIn({ sharesProcess: true })).toMatchObject({ cellsBefore: Array(6), kinds: 6 });
  });

  it('ends a process that cells share when a cell takes too long, and starts another', async () => {
    const environment = { ...toyEnvironment, device: { ...toyEnvironment.device, type: 'cuda' as const } };
    const { records } = await sweep(temporaryFolder(), ['name-process', 'hang', 'name-process'], {
      ...{ environment, sharesProcess: true, timeoutMs: 8000 },
    });
    expect(records.map(({ status }) => status)).toEqual(['ok', 'timeout', 'ok']);
    expect(records[2]!.result!['pid']).not.toBe(records[0]!.result!['pid']);
  });

  it('makes a failed row of a result that the benchmark could not read back', async () => {
    const { records } = await sweep(temporaryFolder(), ['diverge', 'succeed']);
    expect(records.map(({ status, result }) => [status, result])).toEqual([
      ['failed', { answer: null, index: 0 }],
      ['ok', { answer: 42, index: 1 }],
    ]);
    expect(records[0]!.error).toMatchObject({
      name: 'ArgumentError',
      message:
        'What the cell measured is no result of toy (result.answer: expected number, received null). ' +
        'JSON has neither NaN nor infinity: both are null there.',
    });
  });

  it('measures and reports once what is asked for twice', async () => {
    const twice = {
      ...toyBenchmark,
      expand: (parameters: never) => [...toyBenchmark.expand(parameters), ...toyBenchmark.expand(parameters)],
    };
    const { records, total } = await runSweep(twice, {
      parameters: { behaviours: ['succeed'], steps: 1, stepMs: 0, log: null },
      environment: toyEnvironment,
      ceilings: null,
      out: temporaryFolder(),
      task: toyTask,
    });
    expect([records.length, total]).toEqual([1, 1]);
  });

  it('keeps of a huge message what a person may read', async () => {
    const { records } = await sweep(temporaryFolder(), ['throw-codes']);
    const { message, stack } = records[0]!.error!;
    expect(message).toMatch(/xxx… \(100005 characters in all\)$/);
    expect([message.length, stack!.length].every((length) => length < 21_000)).toBe(true);
  });

  it('kills a cell that hangs, with what it started, and goes on', async () => {
    const start = performance.now();
    // Long enough for the second cell's process to start on a busy machine.
    const { records } = await sweep(temporaryFolder(), ['hang', 'succeed'], { timeoutMs: 10_500 });
    expect(records.map(({ status }) => status)).toEqual(['timeout', 'ok']);
    expect(records[0]!.error!.message).toContain('10.5 s');
    expect(performance.now() - start).toBeLessThan(120_000);
  });

  it('keeps what was measured when it is interrupted', async () => {
    const folder = temporaryFolder();
    const controller = new AbortController();
    const observer = {
      cellStarted: (_: string, index: number) => {
        if (index === 2) setTimeout(() => controller.abort(), 300);
      },
    };
    const outcome = await sweep(folder, ['succeed', 'hang', 'succeed'], {
      signal: controller.signal,
      observer,
    });
    expect(outcome).toMatchObject({ interrupted: true, total: 3 });
    expect(outcome.records).toHaveLength(1);

    const measured: number[] = [];
    const resumed = await sweep(folder, ['succeed', 'succeed'], {
      observer: { cellStarted: (_: string, index: number) => measured.push(index) },
    });
    expect(measured).toEqual([2]);
    expect(resumed.records).toHaveLength(2);
  });

  it('measures failed cells again, and neither finished ones nor those that ran out of memory', async () => {
    const folder = temporaryFolder();
    const behaviours: Behaviour[] = ['succeed', 'throw', 'exhaust-device'];
    await sweep(folder, behaviours);
    const measured: string[] = [];
    await sweep(folder, behaviours, { observer: { cellStarted: (name: string) => measured.push(name) } });
    expect(measured).toEqual(['throw 1']);
  });

  it('refuses to mix settings or devices in one folder', async () => {
    const folder = temporaryFolder();
    await sweep(folder, ['succeed']);
    await expect(sweep(folder, ['succeed'], { settings: { steps: 2 } })).rejects.toThrow(
      /another sweep \(steps 1 there, 2 asked\).*--force-new/,
    );
    const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'Toy GPU' };
    const environment = { ...toyEnvironment, device };
    await expect(sweep(folder, ['succeed'], { environment })).rejects.toThrow(/Toy GPU asked/);

    await sweep(folder, ['succeed'], { settings: { steps: 2 }, forceNew: true });
    expect(readResultsFile(join(folder, 'results-2.jsonl'))).toHaveLength(1);
    const measured: string[] = [];
    const observer = { cellStarted: (name: string) => measured.push(name) };
    await sweep(folder, ['succeed'], { settings: { steps: 2 }, observer });
    expect(measured).toEqual([]);
  });

  it('ends with what it has when its folder is removed, or moved', async () => {
    const [folder, aside] = [join(temporaryFolder(), 'out'), join(temporaryFolder(), 'aside')];
    const behaviours: Behaviour[] = ['succeed', 'succeed', 'succeed'];
    const after = (index: number, change: () => void) => ({
      observer: { cellStarted: (_: string, started: number) => started === index && change() },
    });
    const removed = await sweep(
      folder,
      behaviours,
      after(2, () => rmSync(folder, { recursive: true })),
    );
    expect(removed).toMatchObject({ total: 3, interrupted: false, writeError: { name: 'ResultsFileError' } });
    expect(removed.records.map(({ status }) => status)).toEqual(['ok', 'ok']);
    expect(existsSync(folder)).toBe(false);

    const moved = await sweep(
      folder,
      behaviours,
      after(2, () => renameSync(folder, aside)),
    );
    expect(moved.writeError?.message).toMatch(/was moved or removed/);
    expect(readResultsFile(join(aside, 'results.jsonl'))).toHaveLength(2);
    // The lock went with the folder; a later process would find its owner dead.
    rmSync(join(aside, '.lock'));
    renameSync(aside, folder);
    const resumed = await sweep(folder, behaviours);
    expect(resumed).toMatchObject({ writeError: null });
    expect(readResultsFile(join(folder, 'results.jsonl'))).toHaveLength(3);
  });

  it.runIf(process.platform === 'linux').each(['spin', 'hang'] as const)(
    'dies with all that it started when the runner is killed, though its cell is in a %s',
    async (behaviour) => {
      const runner = startToySweep({ out: temporaryFolder(), log: null, behaviours: [behaviour] });
      onTestFinished(() => void runner.kill('SIGKILL'));
      await expect.poll(() => childrenOf(runner.pid!), { timeout: 60_000 }).toHaveLength(1);
      const groups = childrenOf(runner.pid!);
      await expect.poll(() => livingOf(groups), { timeout: 60_000 }).toContain('sleep');
      runner.kill('SIGKILL');
      await expect.poll(() => livingOf(groups), { timeout: 30_000, interval: 20 }).toEqual([]);
    },
  );

  it('survives SIGKILL: no cell is lost, none measured twice', async () => {
    const folder = temporaryFolder();
    const log = join(folder, 'measured.log');
    const cells = 5;
    const start = () => startToySweep({ out: folder, log, behaviours: Array(cells).fill('succeed') });
    const first = start();
    while (readResultsFile(join(folder, 'results.jsonl')).length < 2) await sleep(20);
    first.kill('SIGKILL');
    await once(first, 'exit');
    const kept = readResultsFile(join(folder, 'results.jsonl')).map(({ parameters }) => parameters['index']);
    expect(kept.length).toBeGreaterThanOrEqual(2);
    expect(kept.length).toBeLessThan(cells);

    const second = start();
    expect((await once(second, 'exit'))[0]).toBe(0);
    const indices = readResultsFile(join(folder, 'results.jsonl')).map(
      ({ parameters }) => parameters['index'],
    );
    expect(indices).toEqual([0, 1, 2, 3, 4]);
    // A cell may have ended just as its sweep was killed: then it ran again, but its record is there once.
    const ran = readFileSync(log, 'utf8').trim().split('\n').map(Number);
    expect(ran.filter((index) => kept.includes(index))).toEqual(kept);
  });
});
