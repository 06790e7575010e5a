import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { hasProgram } from '../support/has-program.ts';
import { glooNote, hasGloo, nodeFlags, rankScript } from '../support/run-ranks.ts';
import { SlurmCluster, hasSlurm } from '../support/slurm.ts';
import { standaloneFlags, torchrunFlags } from '../support/torchrun.ts';

const command = [process.execPath, ...nodeFlags, rankScript('hello')];

/** Runs two ranks of the smallest script by a launcher of others, and expects what they print. */
function expectHello(program: string, args: readonly string[], variables: Record<string, string> = {}): void {
  const { status, stdout, stderr } = spawnSync(program, [...args, ...command], {
    encoding: 'utf8',
    env: { ...process.env, ...variables },
  });
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.trimEnd().split('\n').sort()).toEqual([0, 1].map((rank) => `sum 3 3 3 3 on ${rank} of 2`));
}

const note = (isThere: boolean, remedy: string) => (isThere ? '' : ` (skipped: ${remedy})`);

describe.skipIf(!hasGloo)(`the launchers that clusters have${glooNote}`, () => {
  const hasTorchrun = hasProgram('torchrun');
  it.skipIf(!hasTorchrun)(`torchrun${note(hasTorchrun, 'no torchrun')}`, async () => {
    expectHello('torchrun', [...torchrunFlags, ...(await standaloneFlags())]);
    expectHello('torchrun', [...torchrunFlags, '--master_port', String(await freePort())]);
  });

  const hasMpirun = hasProgram('mpirun');
  it.skipIf(!hasMpirun)(`mpirun${note(hasMpirun, 'no mpirun, of openmpi-bin')}`, () => {
    // Root is refused unless both are said; two ranks may share one core.
    const allowed = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
    expectHello('mpirun', ['--oversubscribe', '-n', '2'], allowed);
  });

  it.skipIf(!hasSlurm)(`srun${note(hasSlurm, 'no slurm-wlm, or not root')}`, async () => {
    const cluster = await SlurmCluster.start();
    try {
      expectHello('srun', ['-n', '2', '--overcommit'], cluster.variables);
    } finally {
      cluster.stop();
    }
  });
});
