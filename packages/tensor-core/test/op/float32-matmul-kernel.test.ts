import type { MatmulRequest } from '../../src/op/cuda-lowering.ts';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { getFloat32MatmulKernel, setFloat32MatmulKernel } from '../../src/op/float32-matmul-kernel.ts';
import { Matmul } from '../../src/backends/cuda/matmul/matmul.ts';
import { setFloat32MatmulPrecision } from '../../src/op/float32-matmul-precision.ts';

afterEach(() => {
  setFloat32MatmulKernel('auto');
  setFloat32MatmulPrecision('highest');
  vi.unstubAllEnvs();
});

const request = {
  m: 8,
  n: 8,
  k: 8,
  batch: 1,
  inputDType: 'float32',
  outputDType: 'float32',
} as MatmulRequest;

/** A Matmul whose tensor-core product takes a request if `takes`; it records whether it was forced. */
const notAsked = () => {
  throw new Error('cublasLt is not asked');
};

function make(takes: boolean) {
  const forced: boolean[] = [];
  const product = {
    tryRun: (_: MatmulRequest, force: boolean) => {
      forced.push(force);
      return takes;
    },
  };
  return {
    forced,
    matmul: new Matmul(
      { current: { handle: 1 } },
      () => 0,
      () => undefined,
      product,
      notAsked,
      notAsked,
      () => undefined,
    ),
  };
}

describe('Matmul', () => {
  it('offers float32 products to the tensor cores, and forces them where asked', () => {
    const { forced, matmul } = make(true);
    matmul.run(request);
    setFloat32MatmulKernel('split-half');
    matmul.run(request);
    expect(forced).toEqual([false, true]);
  });

  it('says so if a forced product is impossible', () => {
    setFloat32MatmulKernel('split-half');
    expect(() => make(false).matmul.run(request)).toThrow(
      /split-half cannot multiply 1 × \[8, 8\] · \[8, 8\]/,
    );
  });

  it('clears the result of an empty sum', () => {
    const cleared: number[][] = [];
    const matmul = new Matmul(
      { current: { handle: 1 } },
      () => 0,
      (address, bytes) => cleared.push([address, bytes]),
      null,
      notAsked,
      notAsked,
      () => undefined,
    );
    const empty = { ...request, k: 0, m: 2, n: 3, d: 1000, pitchD: 5, batchStrideD: 0 };
    matmul.run(empty);
    matmul.run({ ...request, m: 0 });
    expect(cleared).toEqual([
      [1000, 12],
      [1020, 12],
    ]);
  });
});

describe('setFloat32MatmulKernel', () => {
  it('names a kernel that does not exist', () => {
    expect(getFloat32MatmulKernel()).toBe('auto');
    expect(() => setFloat32MatmulKernel('fast' as never)).toThrow(/"fast".*auto, simt, split-half/);
  });
});

it.each([
  ['', 'auto'],
  ['simt', 'simt'],
])('ROOFLINE_FLOAT32_MATMUL %j chooses %s', async (value, kernel) => {
  vi.stubEnv('ROOFLINE_FLOAT32_MATMUL', value);
  vi.resetModules();
  const anew = await import('../../src/op/float32-matmul-kernel.ts');
  expect(anew.getFloat32MatmulKernel()).toBe(kernel);
});
