import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { packageProgram } from '../package-program.ts';
import { lifelineVariable } from './lifeline-variable.ts';

export { killTree } from './process-tree.ts';

/** What `spawnWithLifeline` gives to the process. */
export interface LifelineOptions {
  /** All its variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of its descriptors 0, 1 and so on. */
  readonly stdio: readonly ('ignore' | 'pipe')[];
}

/**
 * Starts Node.js with `args`, in a process group of its own. It is killed with all of that group, which is what it has
 * started, as soon as this process is gone, even if that was killed by SIGKILL and it is busy in native code: a thread
 * of it waits at one end of a pipe for the other end to close, which the system does. `killTree` kills the group
 * sooner.
 */
export function spawnWithLifeline(args: readonly string[], options: LifelineOptions): ChildProcess {
  const { env, stdio } = options;
  const preload = ['--import', packageProgram('lifeline').href];
  const child = spawn(process.execPath, [...preload, ...args], {
    env: { ...env, [lifelineVariable]: String(stdio.length) },
    stdio: [...stdio, 'pipe'],
    detached: true,
  });
  // Where a process that it left running holds the other end.
  const lifeline = child.stdio[stdio.length] as Socket | null | undefined;
  child.once('exit', () => lifeline?.destroy());
  return child;
}
