import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

describe.skipIf(hostCompilerVersion() === null)('norms on an emulated GPU', () => {
  it('read a wider weight that begins at 16 bytes, which is less than as many of its elements take', () => {
    const device = openEmulatedDevice();
    const x = t.randn([2, 8], { device, generator: new t.Generator(1) }).requiresGrad_();
    const flat = t.randn([10], { device, dtype: 'float64', generator: new t.Generator(2) });
    const weight = t.slice(flat, 0, 2, 10);
    for (const norm of [
      (w: t.Tensor) => t.rmsNorm(x, w, 1e-5, { dtype: 'float32' }),
      (w: t.Tensor) => t.layerNorm(x, w, w),
    ]) {
      const [apart, dense] = [weight, t.copy(weight)].map((w) => {
        x.grad = null;
        const y = norm(w);
        t.sum(t.mul(y, y)).backward();
        return [y.detach().toFlatArray(), x.grad!.toFlatArray()];
      });
      expect(apart).toEqual(dense);
    }
  });

  it('read a wider gradient that begins at 16 bytes', () => {
    const device = openEmulatedDevice();
    const x = t.cast(t.randn([2, 8], { device, seed: 1 }), 'bfloat16').requiresGrad_();
    const weight = t.randn([8], { device, seed: 2 });
    const dy = t.reshape(t.slice(t.randn([20], { device, seed: 3 }), 0, 4, 20), [2, 8]);
    const [apart, dense] = [dy, t.copy(dy)].map((gradient) => {
      x.grad = null;
      t.rmsNorm(x, weight, 1e-5, { dtype: 'float32' }).backward(gradient);
      return x.grad!.toFlatArray();
    });
    expect(apart).toEqual(dense);
  });
});
