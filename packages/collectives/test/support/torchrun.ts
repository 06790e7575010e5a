import { freePort } from './free-port.ts';

/** Flags of torchrun for two ranks of any program. */
export const torchrunFlags: readonly string[] = [
  ...['--nnodes', '1', '--nproc_per_node', '2', '--no_python'],
  // Without a mapping of redirects, that of a rank that there is not, torchrun 1.13 fails on Python 3.11.
  ...['--redirects', '9:1', '--tee', '9:1'],
];

/** Those of `--standalone`, at a free port: it takes 29400, which another test may have. */
export async function standaloneFlags(): Promise<string[]> {
  return ['--rdzv_backend', 'c10d', '--rdzv_endpoint', `localhost:${await freePort()}`];
}
