// The commands a bare clone offers: `npm run demo`, `npm test` and `npm run mutate`.
// Node 22.12, npm and git are enough: pnpm comes by npx, and Node 24 as a dev dependency.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
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

/** Runs a command that prints little, and beside it a line for each package as soon as its tests are done. */
async function runSummarized(command, ...args) {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-test-'));
  const summary = join(folder, 'summary');
  writeFileSync(summary, '');
  let printed = 0;
  const printNew = () => {
    const text = readFileSync(summary, 'utf8');
    process.stdout.write(text.slice(printed));
    printed = text.length;
  };
  const child = spawn(command, args, {
    cwd: root,
    env: { ...env, ROOFLINE_TEST_SUMMARY: summary, ROOFLINE_TEST_BUILT: '1' },
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  const timer = setInterval(printNew, 200);
  try {
    const [status] = await once(child, 'close');
    printNew();
    process.exitCode = status ?? 1;
  } finally {
    clearInterval(timer);
    rmSync(folder, { recursive: true });
  }
}

const steps = {
  demo() {
    run('turbo', 'run', 'build', '--output-logs=errors-only');
    run('node', 'packages/bench-harness/dist/cli.js', 'demo');
  },
  async test() {
    // Gloo is tested for real: it is installed where apt-get is there and may.
    run('node', 'packages/collectives/native/build.mjs', '--install');
    console.log(
      '\nLint, build, types and tests: some ten minutes on two cores. What fails is told in full.\n',
    );
    await runSummarized(
      'turbo',
      'run',
      'lint',
      'build',
      'typecheck',
      'test',
      'test:repository',
      'typecheck:repository',
      '--output-logs=errors-only',
      '--log-order=grouped',
      // Each package's tests take all cores; more of them at once wait for each other until they time out.
      '--concurrency=3',
      // What fails in one package says nothing of the others.
      '--continue=dependencies-successful',
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
await step(...more);
