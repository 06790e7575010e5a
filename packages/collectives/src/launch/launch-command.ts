import { RooflineError } from '@roofline/tensor-core';
import { parseArgs } from 'node:util';
import { launch } from './launch.ts';
import type { LaunchOptions } from './launch-options.ts';

const usage = `usage: roofline-launch --nproc N [--nnodes N --node-rank I --rdzv HOST:PORT] -- SCRIPT [ARGS]

Starts N ranks of a Node.js script on this machine: they find each other, their output is prefixed, signals are
passed on, and when one fails all end.

  --nproc N          ranks on this machine
  --nnodes N         machines, each with this command (default 1); ROOFLINE_STORE_TOKEN is then one secret on all
  --node-rank I      which of them this is (default 0, the one of HOST)
  --rdzv HOST:PORT   where they meet; needed for several machines
  --help             this text

SCRIPT joins with initProcessGroup({ backend: 'gloo' }) of @roofline/collectives, or 'nccl' on GPUs.`;

const wrongUsage = 2;

/**
 * Runs `roofline-launch` and gives its exit code: the first failed rank's, or 2 for wrong usage, which it explains on
 * stderr before `help`. Without `help` that is the usage of `roofline-launch`.
 */
export async function runLaunchCommand(args: readonly string[], help = `\n${usage}`): Promise<number> {
  let options: LaunchOptions | null;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n${help}`);
    return wrongUsage;
  }
  if (!options) {
    console.log(usage);
    return 0;
  }
  try {
    return (await launch(options)).exitCode;
  } catch (error) {
    if (!(error instanceof RooflineError)) throw error;
    console.error(error.message);
    return error.code === 'ARGUMENT' || error.code === 'RANGE' ? wrongUsage : 1;
  }
}

/** Null where help is asked for. Throws an Error for what is not an option. */
function readOptions(args: readonly string[]): LaunchOptions | null {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      nproc: { type: 'string' },
      nnodes: { type: 'string' },
      'node-rank': { type: 'string' },
      rdzv: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return null;
  const [script, ...rest] = positionals;
  if (values.nproc === undefined) throw new Error('--nproc is missing: how many ranks to start.');
  // Empty, as of a shell variable that is not set, it would start a Node.js without any.
  if (!script) throw new Error('There is no script to start.');
  return {
    processes: countOf('--nproc', values.nproc, 1),
    script,
    args: rest,
    ...(values.nnodes !== undefined && { nodes: countOf('--nnodes', values.nnodes, 1) }),
    ...(values['node-rank'] !== undefined && { nodeRank: countOf('--node-rank', values['node-rank'], 0) }),
    ...(values.rdzv !== undefined && { rendezvous: values.rdzv }),
  };
}

/** Throws an Error for what is not a count, such as the empty text of an unset shell variable. */
function countOf(flag: string, text: string, least: number): number {
  const value = text.trim() === '' ? NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`${flag} wants a whole number of at least ${least}, not '${text}'.`);
}
