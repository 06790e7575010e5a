import { afterEach, describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { DType, Tensor } from '../../src/index.ts';
import { setFloat32MatmulKernel } from '../../src/op/float32-matmul-kernel.ts';
import { setFloat32MatmulPrecision } from '../../src/op/float32-matmul-precision.ts';
import { relativeError, sample, unitRoundoff } from '../op-cases/support/samples.ts';

const cuda = () => t.device('cuda');

afterEach(() => {
  setFloat32MatmulKernel('auto');
  setFloat32MatmulPrecision('highest');
});

/** The error of a product by norm; the exact one is in float64 on the same device. */
function errorOf(product: Tensor, a: Tensor, b: Tensor): number {
  const exact = t.matmul(t.cast(a, 'float64'), t.cast(b, 'float64'));
  return relativeError(t.cast(product, 'float64').toFlatArray(), exact.toFlatArray());
}

describe('matmul', () => {
  const sizes = [
    [1, 1, 1],
    [3, 5, 7],
    [64, 64, 64],
    [129, 65, 33],
    [1024, 768, 256],
    [257, 1000, 511],
  ] as const;
  const dtypes: readonly DType[] = ['float64', 'float32', 'float16', 'bfloat16'];
  it.each(sizes.flatMap((size) => dtypes.map((dtype) => [...size, dtype] as const)))(
    '[%i, %i] by [.., %i] in %s, in all four layouts',
    (m, k, n, dtype) => {
      for (const [transposeA, transposeB] of [
        [false, false],
        [false, true],
        [true, false],
        [true, true],
      ] as const) {
        t.scope(() => {
          const options = { dtype, domain: [-1, 1] as const };
          const a = transposeA
            ? t.transpose(sample([k, m], { ...options, seed: 1 }, cuda()))
            : sample([m, k], { ...options, seed: 1 }, cuda());
          const b = transposeB
            ? t.transpose(sample([n, k], { ...options, seed: 2 }, cuda()))
            : sample([k, n], { ...options, seed: 2 }, cuda());
          // The result is rounded once; float32 sums of k terms round as they go.
          const bound = 2 * unitRoundoff[dtype]! + (dtype === 'float64' ? 2 ** -50 : 2 ** -24 * Math.sqrt(k));
          expect(errorOf(t.matmul(a, b), a, b)).toBeLessThanOrEqual(bound);
        });
      }
    },
  );

  it('scales, and batches by stride', () => {
    t.scope(() => {
      const a = sample([6, 4, 33, 64], { seed: 3 }, cuda());
      const b = sample([6, 4, 64, 17], { seed: 4 }, cuda());
      const y = t.matmul(a, b, { scale: 0.125 });
      expect(errorOf(t.mul(y, 8), a, b)).toBeLessThan(2 ** -20);
    });
  });

  it('reads heads of an attention without a copy', () => {
    t.scope(() => {
      const [batch, time, heads, width] = [2, 33, 4, 16];
      const q = t.transpose(sample([batch, time, heads, width], { seed: 5 }, cuda()), 1, 2);
      const k = t.transpose(sample([batch, time, heads, width], { seed: 6 }, cuda()), 1, 2);
      expect(
        errorOf(t.matmul(q, t.transpose(k)), t.contiguous(q), t.contiguous(t.transpose(k))),
      ).toBeLessThan(2 ** -20);
    });
  });

  it('uses TF32 only when asked', () => {
    t.scope(() => {
      setFloat32MatmulKernel('simt');
      const a = sample([512, 512], { seed: 7 }, cuda());
      const b = sample([512, 512], { seed: 8 }, cuda());
      expect(errorOf(t.matmul(a, b), a, b)).toBeLessThan(2 ** -20);
      setFloat32MatmulPrecision('high');
      const error = errorOf(t.matmul(a, b), a, b);
      expect(error).toBeGreaterThan(2 ** -18);
      expect(error).toBeLessThan(2 ** -9);
    });
  });

  it('multiplies matrices without elements', () => {
    t.scope(() => {
      expect(
        t.matmul(t.zeros([3, 0], { device: cuda() }), t.zeros([0, 2], { device: cuda() })).toFlatArray(),
      ).toEqual([0, 0, 0, 0, 0, 0]);
    });
  });

  it('is as fast as the tensor cores allow', () => {
    t.scope(() => {
      const device = cuda();
      const n = 8192;
      const a = t.cast(sample([n, n], { seed: 9, domain: [-1, 1] }, device), 'bfloat16');
      const b = t.cast(sample([n, n], { seed: 10, domain: [-1, 1] }, device), 'bfloat16');
      for (let i = 0; i < 3; i++) t.matmul(a, b).dispose();
      const start = device.recordEvent();
      for (let i = 0; i < 10; i++) t.matmul(a, b).dispose();
      const ms = device.recordEvent().elapsedMs(start) / 10;
      console.log(`bfloat16 ${n}³: ${((2 * n ** 3) / ms / 1e9).toFixed(0)} TFLOP/s`);
      expect(ms).toBeGreaterThan(0);
    });
  });
});
