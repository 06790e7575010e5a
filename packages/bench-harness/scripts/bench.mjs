// `turbo run bench`: `roofline study` into results/study; `bench:memory` and its like are some of its problems. Words after
// `--` go to it, as `--form full` or `--budget 10m`.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { lockFolder } from '../src/records/folder-lock.ts';

const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const results = (name) => fileURLToPath(new URL(`../../../results/${name}`, import.meta.url));

// Turbo runs tasks at once; measurements would disturb each other.
const release = await waitFor(results('.measuring'));
try {
  const words = [cli, 'study', '--out', results('study'), ...process.argv.slice(2)];
  process.exitCode = spawnSync(process.execPath, words, { stdio: 'inherit' }).status ?? 1;
} finally {
  release();
}

async function waitFor(folder) {
  mkdirSync(folder, { recursive: true });
  for (;;) {
    try {
      return lockFolder(folder);
    } catch (error) {
      if (!/ is in use by /.test(error.message)) throw error;
      await sleep(1000);
    }
  }
}
