import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { applyOne, defineOp, scope, tensor } from '../../../src/index.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

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
    const op = defineOp({
      name: 'reduces again',
      autocast: 'none',
      infer: () => [{ shape: [rounds * threads], dtype: 'float32' }],
      cuda: {
        kind: 'custom',
        launch: (context, [x], [y]) =>
          context.kernel(spec).launch([1, 1, 1], threads, 0, [x!.address, y!.address]),
      },
      cpu: { kind: 'host', run: () => undefined },
    });
    const values = Array.from({ length: threads }, (_, i) => i);
    const sum = values.reduce((a, b) => a + b);
    const device = openEmulatedDevice();
    scope(() => {
      const y = applyOne(op, [tensor(values, { device })], undefined).toTypedArray();
      const expected = Array.from(
        { length: rounds * threads },
        (_, i) => sum + threads * Math.floor(i / threads),
      );
      expect([...y].map(Number)).toEqual(expected);
    });
    rmSync(folder, { recursive: true });
  });
});
