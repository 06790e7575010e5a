import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const isPossible = process.platform === 'linux' && process.arch === 'x64';
const commands =
  'allreduce attention compile ddp e2e flash memory overhead precision profile report compare model doctor agree launch demo bundle'.split(
    ' ',
  );

let scratch: string;
let bundle: string;

/** Runs a program of the bundle as a host would that has no Node.js and none of this one's variables. */
function run(program: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const env = { PATH: `${scratch}/bin:/usr/bin:/bin`, HOME: join(scratch, 'home') };
  return spawnSync(join(bundle, program), args, { cwd: bundle, env, encoding: 'utf8', timeout: 300_000 });
}

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'roofline-bundle-test-'));
  mkdirSync(join(scratch, 'bin'));
  mkdirSync(join(scratch, 'home'));
  // The first `node` of the PATH is not to be run.
  writeFileSync(join(scratch, 'bin/node'), '#!/bin/sh\necho "the node of the host" >&2\nexit 42\n');
  chmodSync(join(scratch, 'bin/node'), 0o755);
  if (!isPossible) return;
  const written = join(scratch, 'written');
  const cli = resolve('packages/bench-harness/dist/cli.js');
  const { status, stderr } = spawnSync(process.execPath, [cli, 'bundle', '--out', written], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  // Unpacked elsewhere, in a checkout of something else, in a folder whose name a shell would split.
  bundle = join(scratch, 'my bundle');
  renameSync(written, bundle);
  const identity = ['-c', 'user.name=someone', '-c', 'user.email=someone@example.org'];
  for (const words of [
    ['init', '--quiet'],
    [...identity, 'commit', '--quiet', '--allow-empty', '-m', 'Else'],
  ])
    expect(spawnSync('git', words, { cwd: scratch }).status).toBe(0);
}, 300_000);

afterAll(() => rmSync(scratch, { recursive: true }));

it.runIf(isPossible)('has every file of the packages that is published, but for types and texts', () => {
  const missing = globSync('packages/*/package.json').flatMap((manifest) => {
    const folder = join(manifest, '..');
    const { files } = JSON.parse(readFileSync(manifest, 'utf8')) as { files: string[] };
    return globSync(
      files.flatMap((pattern) => [pattern, `${pattern}/**`]),
      { cwd: folder },
    )
      .filter((path) => !/\.(d\.ts|d\.ts\.map|md)$/.test(path))
      .map((path) => join(folder, path))
      .filter((path) => !existsSync(join(bundle, path)));
  });
  expect(missing).toEqual([]);
});

it.runIf(isPossible)(
  "doctor says what there is, and how the host's Gloo is built with the Node.js of the bundle",
  () => {
    const { status, stdout, stderr } = run('roofline', 'doctor', '--json');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { diagnosis, device } = JSON.parse(stdout);
    expect(device).not.toBeNull();
    const statusOf = (name: string) =>
      diagnosis.find(({ component }: { component: string }) => component === name);
    expect(statusOf('ONNX Runtime').status).toBe('found');
    expect(statusOf('libgloo')).toMatchObject({
      status: 'missing',
      remedy: expect.stringContaining(
        `'${bundle}/bin/node' '${bundle}/packages/collectives/native/build.mjs'`,
      ),
    });
  },
);

it.runIf(isPossible).each(commands)('%s has its help', (command) => {
  const { status, stdout, stderr } = run('roofline', command, '--help');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain(`roofline ${command}`);
});

it.runIf(isPossible)('measures on the CPU by its own commit, reports and compares', () => {
  const words =
    '--size tiny --context 16 --batch 1 --mode forward --warmup 1 --steps 2 --device cpu --out results/e2e';
  expect(run('roofline', 'e2e', ...words.split(' '))).toMatchObject({ status: 0 });
  const [record = ''] = readFileSync(join(bundle, 'results/e2e/results.jsonl'), 'utf8').split('\n');
  const stamp = readFileSync(join(bundle, 'commit.json'), 'utf8');
  expect(JSON.parse(record).environment.git).toEqual(JSON.parse(stamp));
  expect(run('roofline', 'report', 'results/e2e')).toMatchObject({ status: 0 });
  expect(existsSync(join(bundle, 'results/e2e/report.html'))).toBe(true);
  expect(run('roofline', 'compare', 'results/e2e', 'results/e2e')).toMatchObject({ status: 0 });
});

it.runIf(isPossible)('runs a program of the host that imports the packages, alone and as a rank', () => {
  mkdirSync(join(bundle, 'mine'));
  writeFileSync(
    join(bundle, 'mine/add.ts'),
    `import { add, tensor } from '@roofline/tensor-core';
     import '@roofline/bench-harness';
     const sum: number[] = add(tensor([1, 2]), 1).toFlatArray();
     console.log(sum.join(), process.env['RANK'] ?? 'alone');`,
  );
  expect(run('bin/node', 'mine/add.ts')).toMatchObject({ status: 0, stdout: '2,3 alone\n' });
  expect(run('roofline', 'launch', '--nproc', '1', '--', 'mine/add.ts').stdout).toContain('2,3 0');
});
