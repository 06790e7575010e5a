// `turbo run bench:e2e`: a sweep that a laptop finishes in a minute; with `-- --full`, the one for GPUs.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const sweeps = {
  quick: ['--size', 'tiny', '--context', '64,128', '--warmup', '3'],
  full: ['--size', 'small,medium,large,xl,2.7b', '--context', '128,256,512'],
};
const [first, ...rest] = process.argv.slice(2);
const sweep = first === '--full' ? sweeps.full : sweeps.quick;
const more = first === '--full' ? rest : process.argv.slice(2);

const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const out = fileURLToPath(new URL('../../../results/bench-e2e', import.meta.url));
const { status } = spawnSync(process.execPath, [cli, 'e2e', ...sweep, '--out', out, '--force-new', ...more], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
