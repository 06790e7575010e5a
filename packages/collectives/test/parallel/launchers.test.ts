import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasProgram } from '../support/has-program.ts';
import { glooNote, hasGloo, nodeFlags } from '../support/run-ranks.ts';
import { SlurmCluster, hasSlurm } from '../support/slurm.ts';
import { standaloneFlags, torchrunFlags } from '../support/torchrun.ts';

const fileAt = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const ranks = '2';
const node = [process.execPath, ...nodeFlags];
const example = [fileAt('examples/data-parallel.ts'), '10'];

/** What two ranks of the example print, in order. */
function trained(command: readonly string[], variables: Readonly<Record<string, string>> = {}): string[] {
  const [program, ...args] = [...command, ...example];
  const env = { ...process.env, ...variables };
  const { status, stdout, stderr } = spawnSync(program!, args, { encoding: 'utf8', env });
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  return lines.map((line) => line.replace(/^\[rank \d\] /, '')).sort();
}

const note = (isThere: boolean, remedy: string) => (isThere ? '' : ` (skipped: ${remedy})`);

describe.skipIf(!hasGloo)(`the example gives the same loss to the last bit${glooNote}`, () => {
  let ours: string[];
  beforeAll(() => {
    ours = trained([...node, fileAt('src/cli.ts'), '--nproc', ranks, '--']);
  });

  it('started by roofline-launch: it learns, and ranks stay alike', () => {
    const after = (word: string) => ours.flatMap((line) => line.split(word).slice(1));
    const losses = after('loss ').map(Number);
    expect(losses).toHaveLength(2);
    expect(losses[1]).toBeLessThan(losses[0]! / 2);
    expect(after('parameters ')).toHaveLength(2);
    expect(new Set(after('parameters ')).size).toBe(1);
  });

  const hasTorchrun = hasProgram('torchrun');
  it.skipIf(!hasTorchrun)(`by torchrun${note(hasTorchrun, 'no torchrun')}`, async () => {
    expect(trained(['torchrun', ...torchrunFlags, ...(await standaloneFlags()), ...node])).toEqual(ours);
  });

  const hasMpirun = hasProgram('mpirun');
  it.skipIf(!hasMpirun)(`by mpirun${note(hasMpirun, 'no mpirun, of openmpi-bin')}`, () => {
    // Root is refused unless both are said; two ranks may share one core.
    const allowed = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
    expect(trained(['mpirun', '--oversubscribe', '-n', ranks, ...node], allowed)).toEqual(ours);
  });

  it.skipIf(!hasSlurm)(`by srun${note(hasSlurm, 'no slurm-wlm, or not root')}`, async () => {
    const cluster = await SlurmCluster.start();
    try {
      expect(trained(['srun', '-n', ranks, '--overcommit', ...node], cluster.variables)).toEqual(ours);
    } finally {
      cluster.stop();
    }
  });
});
