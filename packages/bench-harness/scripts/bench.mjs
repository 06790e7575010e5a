// `turbo run bench`, or `bench:memory` and its like for those named: a form that a laptop finishes in a minute; with
// `-- --full`, or ROOFLINE_BENCH=full for all of `turbo run report`, the one for GPUs. What runs is what the
// benchmarks' entries say. Records go to results/bench-NAME.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { benchmarkEntries } from '../dist/index.js';
import { whyNoRanks } from '../src/device/require-backend.ts';
import { waitForFolder } from '../src/records/folder-lock.ts';

const given = process.argv.slice(2);
const benches = benchmarkEntries.filter(({ pipeline }) => pipeline !== undefined);
const named = benches.filter(({ name }) => given.includes(name));
const isFull = given.includes('--full') || process.env['ROOFLINE_BENCH'] === 'full';
const more = given.filter((word) => word !== '--full' && !named.some(({ name }) => name === word));
const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const results = (name) => fileURLToPath(new URL(`../../../results/${name}`, import.meta.url));

// Turbo runs tasks at once; measurements would disturb each other.
const turn = results('.measuring');
mkdirSync(turn, { recursive: true });
const release = waitForFolder(turn);
try {
  for (const { name, pipeline } of named.length > 0 ? named : benches) {
    const out = ['--out', results(`bench-${name}`), '--force-new', '--oom', 'ok'];
    const line = isFull ? pipeline.full : pipeline.quick;
    // Of all, those that this machine can run; one that is named fails and says so.
    const reason = named.length === 0 && pipeline.startsRanks ? await whyNoRanks() : null;
    if (reason !== null) {
      console.error(`${name} is left out: ${reason}`);
      continue;
    }
    const words = [cli, ...line.split(' '), ...out, ...more];
    const { status } = spawnSync(process.execPath, words, { stdio: 'inherit' });
    if (status !== 0) process.exitCode = status ?? 1;
  }
} finally {
  release();
}
