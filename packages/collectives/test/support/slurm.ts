import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { hasProgram } from './has-program.ts';

const programs = ['srun', 'slurmctld', 'slurmd'];

/** Whether this machine has Slurm's programs, and may run its daemons. */
export const hasSlurm = process.getuid?.() === 0 && programs.every(hasProgram);

/** A cluster of this machine alone, without authentication. */
export class SlurmCluster {
  /** What `srun` finds it by. */
  readonly variables: { readonly SLURM_CONF: string };
  readonly #folder: string;
  readonly #daemons: readonly ChildProcess[];

  private constructor(folder: string) {
    this.#folder = folder;
    this.variables = { SLURM_CONF: join(folder, 'slurm.conf') };
    this.#daemons = ['slurmctld', 'slurmd'].map((name) =>
      spawn(name, ['-D', '-f', this.variables.SLURM_CONF], { stdio: 'ignore' }),
    );
  }

  /** Resolves when its node is idle. Throws an Error with the daemons' logs where it is not in a minute. */
  static async start(): Promise<SlurmCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-slurm-'));
    for (const name of ['state', 'spool']) mkdirSync(join(folder, name));
    writeFileSync(join(folder, 'slurm.conf'), await configurationOf(folder));
    const cluster = new SlurmCluster(folder);
    for (let second = 0; second < 60; second++) {
      const env = { ...process.env, ...cluster.variables };
      const { stdout } = spawnSync('sinfo', ['-h', '-o', '%T'], { encoding: 'utf8', env });
      if (stdout.trim() === 'idle') return cluster;
      await sleep(1000);
    }
    const logs = cluster.#logs();
    cluster.stop();
    throw new Error(`Slurm's node does not come up:\n${logs}`);
  }

  stop(): void {
    for (const daemon of this.#daemons) daemon.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #logs(): string {
    const files = ['slurmctld.log', 'slurmd.log'].map((name) => join(this.#folder, name));
    return files.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')).join('\n');
  }
}

async function configurationOf(folder: string): Promise<string> {
  const host = hostname().split('.')[0];
  return [
    'ClusterName=test',
    `SlurmctldHost=${host}(127.0.0.1)`,
    ...['SlurmUser=root', 'SlurmdUser=root', 'AuthType=auth/none', 'CredType=cred/none'],
    ...['ProctrackType=proctrack/pgid', 'TaskPlugin=task/none', 'SwitchType=switch/none', 'MpiDefault=none'],
    ...['SchedulerType=sched/builtin', 'SelectType=select/linear', 'ReturnToService=2'],
    `StateSaveLocation=${folder}/state`,
    `SlurmdSpoolDir=${folder}/spool`,
    ...['slurmctld', 'slurmd'].flatMap((name) => [
      `${name.replace('s', 'S')}PidFile=${folder}/${name}.pid`,
      `${name.replace('s', 'S')}LogFile=${folder}/${name}.log`,
    ]),
    `SlurmctldPort=${await freePort()}`,
    `SlurmdPort=${await freePort()}`,
    `NodeName=${host} NodeAddr=127.0.0.1 CPUs=${availableParallelism()} State=UNKNOWN`,
    'PartitionName=all Nodes=ALL Default=YES State=UP',
    '',
  ].join('\n');
}
