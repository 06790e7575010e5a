// The commands a bare clone offers: `npm run demo`, `npm test`, `npm run pack`, `npm run mutate` and `npm run fuzz`.
// Node 22.12, npm and git are enough: pnpm comes by npx, and Node 24 as a dev dependency.
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const env = {
  ...process.env,
  PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
  TURBO_TELEMETRY_DISABLED: '1',
  DO_NOT_TRACK: '1',
};

const spawnOptions = { cwd: root, env, stdio: 'inherit', shell: process.platform === 'win32' };

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, spawnOptions);
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs a command that prints little, and prints a line for each package as soon as its tests are done. */
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
    ...spawnOptions,
    env: { ...env, ROOFLINE_TEST_SUMMARY: summary, ROOFLINE_TEST_BUILT: '1' },
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

/** What draws random programs, by where they run: the package, the kind of its tests, and their files. */
const randomTests = {
  symbols: [
    ['tensor-core', 'vitest', 'test/compile/random-passes.test.ts'],
    ['optim', 'vitest', 'test/random-passes.test.ts'],
  ],
  cpu: [
    ['tensor-core', 'vitest', 'test/compile/random-programs.test.ts'],
    ['optim', 'vitest', 'test/random-steps.test.ts'],
  ],
  emulated: [
    ['tensor-core', 'vitest', 'test/compile/random-programs-emulated.test.ts'],
    ['tensor-core', 'vitest', 'test/compile/random-products-emulated.test.ts'],
    ['optim', 'vitest', 'test/random-steps-emulated.test.ts'],
  ],
  cuda: [
    ['tensor-core', 'vitest.gpu', 'test/gpu/random-programs.test.ts'],
    ['optim', 'vitest.gpu', 'test/gpu/random-steps.test.ts'],
  ],
};

/**
 * Programs that one process draws at most. Each kernel of the emulated GPU is a library that stays loaded, and the system bounds
 * how many mappings a process may have.
 */
const programsOfProcess = 2000;

/** Seeds and numbers of programs, by process; a program's seed is the first one plus its place. */
function* drawings(seed, programs) {
  for (let drawn = 0; drawn < programs; drawn += programsOfProcess)
    yield { seed: seed + drawn, programs: Math.min(programsOfProcess, programs - drawn) };
}

/** The options of `npm run fuzz`; exits on those that it does not have. */
function fuzzOptions(given) {
  try {
    const options = Object.fromEntries(
      ['programs', 'minutes', 'seed', 'device', 'leave-out'].map((name) => [name, { type: 'string' }]),
    );
    const { values } = parseArgs({ args: given, options });
    const devices = values.device ? [values.device] : Object.keys(randomTests);
    if (!devices.every((device) => device in randomTests)) throw new Error(`no device ${values.device}`);
    return { ...values, devices };
  } catch (error) {
    console.error(
      `${error.message}\nusage: npm run fuzz -- [--programs N | --minutes N] [--seed N] [--device symbols|cpu|emulated|cuda] [--leave-out KINDS]`,
    );
    process.exit(2);
  }
}

const steps = {
  demo() {
    run('turbo', 'run', 'build', '--output-logs=errors-only');
    run('node', 'packages/bench-harness/dist/cli.js', 'demo');
  },
  pack() {
    run('turbo', 'run', 'build', '--output-logs=errors-only');
    run('node', 'scripts/pack-packages.mjs');
  },
  async test() {
    // Gloo is tested for real: it is installed where apt-get is there and may.
    run('node', 'packages/collectives/native/build.mjs', '--install');
    console.log(
      '\nLint, build, types and tests: 10 to 25 minutes on two cores. What fails is printed in full.\n',
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
      // Each package's tests take all cores: three of them at once took 1.3 times as long.
      '--concurrency=1',
      // What fails in one package says nothing of the others.
      '--continue=dependencies-successful',
    );
  },
  /** Each test of random programs draws so many, or draws for so long, from a seed that is printed. */
  fuzz(...given) {
    const {
      devices,
      programs,
      minutes = programs ? undefined : '2',
      seed = String(randomInt(2 ** 31)),
      ...more
    } = fuzzOptions(given);
    console.log(`\nRandom programs from seed ${seed} on.`);
    Object.assign(env, {
      ROOFLINE_FUZZ_MINUTES: minutes ?? '',
      ROOFLINE_FUZZ_LEAVE_OUT: more['leave-out'] ?? '',
    });
    // By minutes, one process draws as many as it can.
    const parts = programs ? [...drawings(Number(seed), Number(programs))] : [{ seed, programs: 10 ** 9 }];
    let status = 0;
    for (const [name, config, file] of devices.flatMap((device) => randomTests[device])) {
      const cwd = join(root, 'packages', name);
      const tests = ['run', '--config', `../../tooling/${config}.config.ts`, '--testTimeout=0', file];
      for (const part of parts) {
        Object.assign(env, {
          ROOFLINE_FUZZ_SEED: String(part.seed),
          ROOFLINE_FUZZ_PROGRAMS: String(part.programs),
        });
        const ended = spawnSync('vitest', tests, { ...spawnOptions, cwd }).status ?? 1;
        status ||= ended;
      }
    }
    process.exitCode = status;
  },
  mutate(...given) {
    const files = given.filter((each) => each !== '--conditions');
    if (given.length > files.length) {
      const node = ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning'];
      run('node', ...node, 'tooling/conditions/mutate-conditions.mjs', ...files);
      return;
    }
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
