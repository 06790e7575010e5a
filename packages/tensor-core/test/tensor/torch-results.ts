import { spawnSync } from 'node:child_process';

/** An interpreter with PyTorch; undefined if there is none. */
export const torchPython = ['/usr/bin/python3', 'python3'].find(
  (command) => spawnSync(command, ['-c', 'import torch']).status === 0,
);

/** What a script prints as JSON, given `input` as JSON on its standard input. Throws with Python's output. */
export function askTorch(script: string, input: unknown): unknown {
  const { stdout, stderr, status } = spawnSync(torchPython!, ['-c', script], {
    input: JSON.stringify(input),
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString());
}
