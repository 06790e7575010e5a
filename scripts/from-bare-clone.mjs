// The commands a bare clone offers: `npm run demo`, `npm test` and `npm run mutate`.
// Node 22.12, npm and git are enough: pnpm comes by npx, and Node 24 as a dev dependency.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const env = {
  ...process.env,
  PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
  TURBO_TELEMETRY_DISABLED: '1',
  DO_NOT_TRACK: '1',
};

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    env,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

const steps = {
  demo() {
    run('turbo', 'run', 'build', '--output-logs=errors-only');
    run('node', 'packages/bench-harness/dist/cli.js', 'demo');
  },
  test() {
    // Gloo is tested for real: it is installed where apt-get is there and may.
    run('node', 'packages/collectives/native/build.mjs', '--install');
    run(
      'turbo',
      'run',
      'lint',
      'build',
      'typecheck',
      'test',
      'test:repository',
      'typecheck:repository',
      '--output-logs=new-only',
    );
  },
  mutate(...files) {
    const tests = files.filter((file) => file.endsWith('.test.ts'));
    const sources = files.filter((file) => !file.endsWith('.test.ts'));
    const chosen = sources.length > 0 ? ['--mutate', sources.join(',')] : [];
    const by = tests.length > 0 ? ['--testFiles', tests.join(',')] : [];
    run('stryker', 'run', 'tooling/stryker.config.mjs', ...chosen, ...by);
  },
};

const [name, ...more] = process.argv.slice(2);
const step = steps[name];
if (!step) {
  console.error(`usage: node scripts/from-bare-clone.mjs ${Object.keys(steps).join('|')}`);
  process.exit(2);
}
run('npx', '-y', packageManager, 'install', '--frozen-lockfile', '--prefer-offline');
step(...more);
