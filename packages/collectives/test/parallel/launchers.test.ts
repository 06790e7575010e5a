import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo } from '../support/run-ranks.ts';

const fileAt = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const steps = '10';
const program = [
  process.execPath,
  '--conditions=roofline-source',
  '--disable-warning=ExperimentalWarning',
  fileAt('examples/data-parallel.ts'),
  steps,
];
const node = program.slice(0, 3);

/** How each launcher starts a number of ranks, and how one finds out whether it can. */
const launchers = [
  {
    name: 'torchrun',
    probe: ['torchrun', '--help'],
    // Without a mapping of redirects, that of a rank that there is not, torchrun 1.13 fails on Python 3.11.
    start: (size: number) => [
      'torchrun',
      '--standalone',
      '--nproc_per_node',
      `${size}`,
      '--redirects',
      '9:1',
      '--tee',
      '9:1',
      '--no_python',
    ],
  },
  {
    name: 'mpirun',
    probe: ['mpirun', '--version'],
    start: (size: number) => ['mpirun', '--allow-run-as-root', '--oversubscribe', '-np', `${size}`],
  },
  {
    name: 'srun',
    // It is often there without a cluster behind it.
    probe: ['srun', '--immediate=5', '--ntasks', '2', '--overcommit', 'true'],
    start: (size: number) => ['srun', '--overcommit', '--ntasks', `${size}`],
  },
].map((launcher) => ({ ...launcher, isHere: run(launcher.probe).status === 0 }));

function run([command, ...args]: readonly string[]) {
  return spawnSync(command!, args, { encoding: 'utf8' });
}

/** What the ranks of the example print, in order. */
function trained(command: readonly string[]): string[] {
  const { status, stdout, stderr } = run(command);
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  return lines.map((line) => line.replace(/^\[rank \d\] /, '')).sort();
}

const absent = launchers.filter(({ isHere }) => !isHere).map(({ name }) => name);
const note = absent.length > 0 ? ` (without ${absent.join(' and ')})` : '';

describe.skipIf(!hasGloo)(`the example${glooNote}`, () => {
  it(`every launcher gives the same loss to the last bit${note}`, () => {
    const size = 2;
    const command = [...node, fileAt('src/cli.ts'), '--nproc', `${size}`, '--', ...program.slice(3)];
    const lines = trained(command);
    const losses = lines
      .filter((line) => line.startsWith('step'))
      .map((line) => Number(line.split('loss ')[1]));
    expect(losses).toHaveLength(2);
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
    const digests = lines
      .filter((line) => line.startsWith('rank'))
      .map((line) => line.split('parameters ')[1]);
    expect(new Set(digests).size).toBe(1);
    expect(digests).toHaveLength(size);
    for (const { start } of launchers.filter(({ isHere }) => isHere))
      expect(trained([...start(size), ...program])).toEqual(lines);
  });
});
