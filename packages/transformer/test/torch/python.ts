import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ModelConfig } from '../../src/index.ts';

/** The first Python that imports PyTorch: `ROOFLINE_PYTHON`, or one of the usual names. */
export function findTorchPython(): string | undefined {
  const candidates = [process.env['ROOFLINE_PYTHON'], 'python3', '/usr/bin/python3', 'python'];
  return candidates.find((python) => python && spawnSync(python, ['-c', 'import torch']).status === 0);
}

/** Runs reference.py; its own explanation says what it writes. */
export function runReference(python: string, config: ModelConfig, seed: number, output: string): void {
  const script = fileURLToPath(new URL('reference.py', import.meta.url));
  const { status, stderr } = spawnSync(python, ['-B', script, JSON.stringify(config), String(seed), output], {
    env: { ...process.env, OMP_NUM_THREADS: '1' },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`reference.py failed:\n${stderr}`);
}
