import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readResultsFile } from '../../src/records/results-file.ts';
import { runSweep, type SweepOptions } from '../../src/runner/sweep.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
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

describe('runSweep', () => {
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

  it('survives SIGKILL: no cell is lost, none measured twice', async () => {
    const folder = temporaryFolder();
    const log = join(folder, 'measured.log');
    const cells = 5;
    const program = fileURLToPath(new URL('../fixtures/toy-sweep.ts', import.meta.url));
    const start = () =>
      spawn(
        process.execPath,
        ['--conditions=roofline-source', program, JSON.stringify({ out: folder, log, cells })],
        { stdio: ['ignore', 'inherit', 'inherit'] },
      );
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
