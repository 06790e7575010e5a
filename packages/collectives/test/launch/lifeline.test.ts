import { randomUUID } from 'node:crypto';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { livingWith, tellsLiving } from '../support/living-processes.ts';
import { packageProgram } from '../../src/package-program.ts';
import { hasGloo, nodeFlags, rankScript } from '../support/run-ranks.ts';

const program = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const note = tellsLiving ? '' : ' (skipped: only Linux shows what lives)';
/** A second or two on an idle machine. Without a lifeline they would live for the minute of test/ranks/outlives.ts. */
const limitMs = 20_000;
const markName = 'ROOFLINE_TEST_MARK';

/** Starts two ranks that would live for a minute, in a state of test/ranks/outlives.ts. */
function startLauncher(state: string): { launcher: ChildProcess; living: () => string[] } {
  const mark = randomUUID();
  const launcher = spawn(
    process.execPath,
    [...nodeFlags, program, '--nproc', '2', '--', rankScript('outlives'), state],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, [markName]: mark } },
  );
  onTestFinished(() => void launcher.kill());
  return { launcher, living: () => livingWith(markName, mark) };
}

async function kill(launcher: ChildProcess, living: () => string[]): Promise<void> {
  launcher.kill('SIGKILL');
  await expect.poll(living, { timeout: limitMs, interval: 20 }).toEqual([]);
}

describe.runIf(tellsLiving)(`of a launcher that was killed nothing is left soon after${note}`, () => {
  it.each<readonly [string, number]>([
    ['waits', 2],
    ['spins', 2],
    ...(hasGloo ? [['is blocked in native code', 2] as const] : []),
    ['has started another program', 2],
    ['has forked itself', 2],
    ['launches ranks of its own', 4],
  ])('a rank that %s', async (state, ready) => {
    const { launcher, living } = startLauncher(state);
    let output = '';
    launcher.stdout!.setEncoding('utf8').on('data', (text: string) => (output += text));
    await expect.poll(() => output.match(/ready/g)?.length, { timeout: 60_000 }).toBe(ready);
    await sleep(state === 'is blocked in native code' ? 200 : 0);
    expect(living().length).toBeGreaterThan(ready);
    await kill(launcher, living);
  });

  it.each([60, 120, 180, 240, 300])('ranks that have been starting for some %i ms', async (ms) => {
    const { launcher, living } = startLauncher('spins');
    await once(launcher, 'spawn');
    await expect.poll(() => living().length, { timeout: 60_000, interval: 5 }).toBeGreaterThan(1);
    await sleep(ms - 60);
    await kill(launcher, living);
  });
});

it("a process in another one's group is killed by itself", async () => {
  const spins = 'console.log("ready"); for (const until = Date.now() + 60_000; Date.now() < until; );';
  const preload = ['--import', packageProgram('lifeline').href];
  const child = spawn(process.execPath, [...nodeFlags, ...preload, '-e', spins], {
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    env: { ...process.env, ROOFLINE_LIFELINE: '3' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout!, 'data');
  (child.stdio[3] as Socket).destroy();
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
});

it('costs a rank no package: neither the preloaded module nor its thread loads one', () => {
  const loaded = (file: URL): string[] => {
    const imports = readFileSync(file, 'utf8').matchAll(
      /^(?:import|export) (?!type )(?:[^']*? from )?'([^']+)';$/gm,
    );
    return [...imports].flatMap(([, name]) =>
      name!.startsWith('.') ? loaded(new URL(name!, file)) : [name!],
    );
  };
  const names = ['lifeline', 'lifeline-thread'].flatMap((name) => loaded(packageProgram(name)));
  expect(names).toContain('node:worker_threads');
  expect(names.filter((name) => !name.startsWith('node:'))).toEqual([]);
});
