import { RooflineError } from '@roofline/tensor-core';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type LaunchOptions, type LaunchResult, launch } from '../../src/index.ts';
import { hasProgram } from '../support/has-program.ts';
import { glooNote, hasGloo, nodeFlags, rankScript } from '../support/run-ranks.ts';

const program = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

/** Runs the command to its end. */
function command(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...nodeFlags, program, ...args], {
    encoding: 'utf8',
    env: { ...process.env, CUDA_VISIBLE_DEVICES: '4,6' },
  });
  return { code: status, stdout, stderr };
}

const linesOf = (text: string) => text.trimEnd().split('\n').sort();

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('the command', () => {
  it('gives each rank its place and a GPU of its own, and prefixes what it writes', () => {
    const { code, stdout, stderr } = command('--nproc', '3', '--', rankScript('misbehave'), 'variables');
    expect(code).toBe(0);
    expect(linesOf(stdout)).toEqual(['[rank 0] 0|3|0|3|4', '[rank 1] 1|3|1|3|6', '[rank 2] 2|3|2|3|']);
    expect(linesOf(stderr)).toEqual([0, 1, 2].map((rank) => `[rank ${rank}] and on stderr`));
  });

  it('a rank that ends with a code ends all, those too that ignore SIGTERM', async () => {
    const lines: string[] = [];
    const startMs = performance.now();
    const result = await launchScript({
      processes: 2,
      args: ['ignores', '1'],
      graceMs: 200,
      write: (_, line) => lines.push(line),
    });
    expect(result).toMatchObject({ exitCode: 3, failure: { rank: 1, exitCode: 3, signal: null } });
    expect(lines.at(-1)).toBe('rank 1 failed first: exit code 3');
    expect(performance.now() - startMs).toBeLessThan(30_000);
  });

  it('a rank that leaves a child behind, which holds its output, ends all as well', async () => {
    const result = await launchScript({ processes: 2, args: ['leaves a child', '1'], write: () => {} });
    expect(result).toMatchObject({ exitCode: 4, failure: { rank: 1, exitCode: 4, signal: null } });
    const [, child] = /^child (\d+)$/.exec(result.failure!.lastLines[0]!)!;
    // It lives: nothing waited for it.
    process.kill(Number(child), 'SIGKILL');
  }, 30_000);

  it('a program that ends before its ranks ends them too', async () => {
    const args = [...nodeFlags, rankScript('launching')];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status).toBe(1);
    expect(stderr).toContain('the program’s own');
    const pids = linesOf(stdout).map((line) => Number(line.split('] ')[1]));
    expect(pids).toHaveLength(2);
    for (const pid of pids) await expect.poll(() => isRunning(pid)).toBe(false);
  });

  it('passes signals on', async () => {
    const child = spawn(
      process.execPath,
      [...nodeFlags, program, '--nproc', '2', '--', rankScript('misbehave'), 'signals'],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (text.includes('ready') && output.match(/ready/g)?.length === 2) child.kill('SIGINT');
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect(code).toBe(0);
    expect(linesOf(output)).toEqual([
      '[rank 0] got SIGINT',
      '[rank 0] ready',
      '[rank 1] got SIGINT',
      '[rank 1] ready',
    ]);
  });

  const hasScript = hasProgram('script');
  it.skipIf(!hasScript)(
    `a Ctrl-C reaches each rank once${hasScript ? '' : ' (skipped: no script, of util-linux)'}`,
    async () => {
      const words = [process.execPath, ...nodeFlags, program, '--nproc', '2', '--', rankScript('misbehave')];
      // The shell gives its place to the launcher: one that waits for it, as dash does, would die of the Ctrl-C too.
      const line = ['exec', ...words, "'counts signals'"].join(' ');
      const terminal = spawn('script', ['-qec', line, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
      let output = '';
      terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (text.includes('ready') && output.match(/ready/g)?.length === 2) terminal.stdin.write('\x03');
      });
      expect(await once(terminal, 'close')).toEqual([0, null]);
    },
  );

  it.each([
    [[], '--nproc is missing'],
    [['--nproc', '2'], 'no script'],
    [['--nproc', 'two', 'x.js'], "--nproc wants a whole number of at least 1, not 'two'."],
    [['--nproc', '0', 'x.js'], "--nproc wants a whole number of at least 1, not '0'."],
    [['--nproc', '1', '--nnodes', '1.5', 'x.js'], "--nnodes wants a whole number of at least 1, not '1.5'."],
    [['--nprocs', '2', 'x.js'], "Unknown option '--nprocs'"],
    [['--nproc', '1', '--nnodes', '2', 'x.js'], 'several nodes need a rendezvous'],
    [['--nproc', '1', '--nnodes', '2', '--rdzv', 'h', 'x.js'], 'a host and a port'],
    [['--nproc', '1', '--nnodes', '2', '--rdzv', 'h:1', 'x.js'], 'ROOFLINE_STORE_TOKEN'],
    [['--nproc', '1', '--node-rank', '1', 'x.js'], 'nodeRank 1 is none of 1 nodes'],
    // Of shell variables that are not set: each machine would be the first.
    [['--nproc', '1', '--node-rank', '', 'x.js'], "--node-rank wants a whole number of at least 0, not ''."],
    [['--nproc', ' ', 'x.js'], "--nproc wants a whole number of at least 1, not ' '."],
    [['--nproc', '1', '--nnodes', '2', '--rdzv', 'h:0', 'x.js'], 'port that all know'],
  ])('%j is wrong usage', (args, message) => {
    const { code, stderr } = command(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('ends well, after its ranks, where nothing reads what they write', async () => {
    const child = spawn(
      process.execPath,
      [...nodeFlags, program, '--nproc', '2', '--', rankScript('misbehave'), 'chatters'],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    child.stdout.once('data', () => child.stdout.destroy());
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    const [code] = (await once(child, 'close')) as [number | null];
    expect({ code, errors: linesOf(errors) }).toEqual({
      code: 0,
      errors: [0, 1].map((rank) => `[rank ${rank}] at its end`),
    });
  });

  it('has help', () => {
    expect(command('--help')).toMatchObject({ code: 0, stderr: '' });
  });
});

function launchScript(options: Omit<LaunchOptions, 'script'>): Promise<LaunchResult> {
  const { execArgv } = process;
  // The ranks run by the options that this process was started with.
  process.execArgv = [...nodeFlags];
  try {
    return launch({ script: rankScript('misbehave'), ...options });
  } finally {
    setImmediate(() => (process.execArgv = execArgv));
  }
}

it('refuses what makes no sense', async () => {
  await expect(launch({ processes: 1.5, script: 'x' })).rejects.toThrow(RooflineError);
});

describe.skipIf(!hasGloo)(`ranks that meet${glooNote}`, () => {
  it("reports the first rank's error last, not those that lost it", () => {
    const { code, stderr } = command('--nproc', '3', '--', rankScript('misbehave'), 'throws', '1');
    expect(code).toBe(1);
    const [, summary] = stderr.split('rank 1 failed first: exit code 1\n');
    expect(summary).toContain('RangeError: the first fault');
    expect(summary).not.toContain('CollectiveError');
  });

  it('two launchers, as on two machines, make one world', async () => {
    vi.stubEnv('ROOFLINE_STORE_TOKEN', 'shared');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { createServer } = await import('node:net');
    const probe = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => probe.once('listening', resolve));
    const { port } = probe.address() as { port: number };
    probe.close();
    const launchers = [0, 1].map((nodeRank) =>
      spawn(
        process.execPath,
        [
          ...[...nodeFlags, program, '--nproc', '2', '--nnodes', '2', '--node-rank', String(nodeRank)],
          ...['--rdzv', `127.0.0.1:${port}`, '--', rankScript('hello')],
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      ),
    );
    const outputs = await Promise.all(
      launchers.map(async (child) => {
        let output = '';
        child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
        expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
        return linesOf(output);
      }),
    );
    expect(outputs.flat()).toEqual(
      [0, 1, 2, 3].map((rank) => `[rank ${rank}] sum 10 10 10 10 on ${rank} of 4`),
    );
    delete process.env.ROOFLINE_STORE_TOKEN;
  });
});
