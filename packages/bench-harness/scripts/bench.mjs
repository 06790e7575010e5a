// `turbo run bench:e2e` and its like: a form that a laptop finishes in a minute; with `-- --full`, or
// ROOFLINE_BENCH=full for all of `turbo run report`, the one for GPUs. Records go to results/bench-NAME.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const SIZES = 'small,medium,large,xl,2.7b';

/** Each benchmark is one command or several; `command` where it is not the benchmark's name. */
const benches = {
  e2e: [
    {
      quick: ['--size', 'tiny', '--context', '64,128', '--warmup', '3'],
      full: ['--size', SIZES, '--context', '128,256,512', '--dtype', 'float32,bfloat16'],
    },
    {
      command: 'e2e',
      name: 'warmup',
      quick: ['--size', 'tiny', '--context', '64', '--mode', 'train-step', '--warmup', '0,1,2,5'],
      full: ['--size', 'small', '--warmup', '0,1,2,5'],
    },
  ],
  profile: [
    {
      quick: ['--size', 'tiny', '--context', '64', '--warmup', '1', '--steps', '3'],
      full: ['--size', 'small,2.7b', '--dtype', 'float32,bfloat16'],
    },
  ],
  memory: [
    {
      quick: ['--size', 'tiny', '--context', '64', '--warmup', '1', '--steps', '2'],
      full: ['--size', SIZES],
    },
  ],
  precision: [{ quick: ['--size', 'tiny', '--context', '64', '--steps', '5'], full: ['--size', SIZES] }],
};

const [bench, ...given] = process.argv.slice(2);
const isFull = given.includes('--full') || process.env['ROOFLINE_BENCH'] === 'full';
const more = given.filter((word) => word !== '--full');
const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const results = (name) => fileURLToPath(new URL(`../../../results/${name}`, import.meta.url));
const lock = results('.measuring');

/** Turbo runs tasks at once; measurements would disturb each other. */
async function takeTurn() {
  mkdirSync(dirname(lock), { recursive: true });
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (isLeftOver()) rmSync(lock, { force: true });
    else await sleep(300);
  }
}

/** Whether who wrote the lock is gone. */
function isLeftOver() {
  try {
    process.kill(Number(readFileSync(lock, 'utf8')), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

await takeTurn();
try {
  for (const { command = bench, name = command, quick, full } of benches[bench]) {
    const out = ['--out', results(`bench-${name}`), '--force-new', '--oom', 'ok'];
    const words = [cli, command, ...(isFull ? full : quick), ...out, ...more];
    const { status } = spawnSync(process.execPath, words, { stdio: 'inherit' });
    if (status !== 0) process.exitCode = status ?? 1;
  }
} finally {
  rmSync(lock, { force: true });
}
