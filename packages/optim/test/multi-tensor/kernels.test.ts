import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const found = spawnSync('nvcc', ['--version']).status === 0;
const source = fileURLToPath(new URL('../../kernels/multi_tensor.cu', import.meta.url));

describe('multi_tensor.cu', () => {
  it.skipIf(!found).each([80, 90])('compiles for compute capability %i (needs nvcc)', (capability) => {
    const flags = [
      `-gencode=arch=compute_${capability},code=sm_${capability}`,
      '-cubin',
      '-Werror=all-warnings',
    ];
    const { status, stderr } = spawnSync('nvcc', [...flags, '-o', '/dev/null', source], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });
});
