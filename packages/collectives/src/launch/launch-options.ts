import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { RooflineError, checkCount, checkOptions, checkText, describeValue } from '@roofline/tensor-core';
import { type HostAndPort, parseHostAndPort } from '../ranks/host-and-port.ts';

/** How many ranks run which script, and where they meet. */
export interface LaunchOptions {
  /** Ranks to start on this machine. */
  readonly processes: number;
  /** The script that each runs by Node.js, with this process's own Node options, and its arguments. */
  readonly script: string;
  readonly args?: readonly string[];
  /** Machines, each with a launcher of its own and as many ranks. Default 1. */
  readonly nodes?: number;
  /** Which of them this is. Default 0: the one that hosts the store. */
  readonly nodeRank?: number;
  /** Where the store is, such as `10.0.0.1:29500`: needed for several machines. Default: a free port of this machine alone. */
  readonly rendezvous?: string;
  /** The store's token. Default: ROOFLINE_STORE_TOKEN, or on one machine a random one. */
  readonly token?: string;
  /** How long ranks may take to end once asked to, before they are killed. Default 5000. */
  readonly graceMs?: number;
  /** Where lines of output go, prefixed with their rank. Default: this process's own. */
  readonly write?: (stream: 'stdout' | 'stderr', line: string) => void;
}

const optionNames: readonly (keyof LaunchOptions)[] = [
  'processes',
  'script',
  'args',
  'nodes',
  'nodeRank',
  'rendezvous',
  'token',
  'graceMs',
  'write',
];

/** Throws a RooflineError for what makes no sense. */
export function checkLaunchOptions(options: LaunchOptions): void {
  checkOptions('launch', options, optionNames);
  const { nodes = 1, nodeRank = 0, args = [], graceMs = 0, write = () => {} } = options;
  checkCount('launch', 'processes', options.processes, 1);
  checkText('launch', 'the script', options.script);
  if (!Array.isArray(args)) throw argumentError(`args must be a list of texts, not ${describeValue(args)}`);
  for (const arg of args) checkText('launch', 'an argument', arg as string);
  checkCount('launch', 'nodes', nodes, 1);
  checkCount('launch', 'nodeRank', nodeRank);
  checkCount('launch', 'graceMs', graceMs);
  if (typeof write !== 'function')
    throw argumentError(`write must be a function, not ${describeValue(write)}`);
  if (options.token !== undefined) checkText('launch', 'the token', options.token);
  if (nodeRank >= nodes)
    throw argumentError(`nodeRank ${nodeRank} is none of ${nodes} nodes; they count from 0`);
  const place = options.rendezvous === undefined ? null : readRendezvous(options.rendezvous);
  if (nodes === 1) return;
  if (place === null)
    throw argumentError('several nodes need a rendezvous, such as 10.0.0.1:29500, the same on all');
  if (place.port === 0)
    throw argumentError(
      `the rendezvous of several nodes needs a port that all know, not ${options.rendezvous}`,
    );
}

/** A host and a port from `10.0.0.1:29500` or `[fd00::1]:29500`. */
export function readRendezvous(text: string): HostAndPort {
  checkText('launch', 'the rendezvous', text);
  const place = parseHostAndPort(text);
  if (place) return place;
  throw argumentError(`the rendezvous must be a host and a port such as 10.0.0.1:29500, not "${text}"`);
}

/** Throws a RooflineError for a script that Node.js does not find: it tries extensions, and the main file of a folder. */
export function checkScript(script: string): void {
  const path = resolve(script);
  // An option of Node.js, with the script after it.
  if (script.startsWith('-')) return;
  try {
    createRequire(path).resolve(path);
  } catch (cause) {
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
    const reason = isFolder ? 'is a folder without an index.js' : 'was not found';
    throw new RooflineError('ARGUMENT', `launch: the script ${path} ${reason}.`, { cause });
  }
}

function argumentError(message: string): RooflineError {
  return new RooflineError('ARGUMENT', `launch: ${message}.`);
}
