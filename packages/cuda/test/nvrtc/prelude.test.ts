import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';

const threads = 256;
const rounds = 4;

// Reductions that follow one another at once share their memory: only barriers keep them apart.
const source = `
#include "prelude.cuh"
extern "C" __global__ void reduces_again(const float* x, float* y) {
  for (int round = 0; round < ${rounds}; round++) {
    const float sum = block_reduce<${threads}>(x[threadIdx.x] + round, Sum{});
    y[round * ${threads} + threadIdx.x] = sum;
  }
}
`;

describe.skipIf(!hostCompilerVersion())('block_reduce, emulated', () => {
  it('gives every thread the sum, also of the reduction after another', () => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-prelude-'));
    writeFileSync(join(folder, 'reduces_again.cu'), source);
    const spec = {
      source: pathToFileURL(join(folder, 'reduces_again.cu')),
      name: 'reduces_again',
      parameters: 'pp',
    };
    const values = Float32Array.from({ length: threads }, (_, i) => i);
    const sum = values.reduce((a, b) => a + b);
    const gpu = openEmulatedGpu();
    using x = gpu.upload(values);
    using y = gpu.allocateMemory(4 * rounds * threads);
    gpu.kernel(spec).launch([1, 1, 1], threads, 0, [x.address, y.address]);
    const expected = Array.from(
      { length: rounds * threads },
      (_, i) => sum + threads * Math.floor(i / threads),
    );
    expect([...y.read(new Float32Array(rounds * threads))]).toEqual(expected);
    rmSync(folder, { recursive: true });
  });
});
