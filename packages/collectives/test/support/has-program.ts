import { spawnSync } from 'node:child_process';

/** Whether the shell finds a program. */
export function hasProgram(name: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
}
