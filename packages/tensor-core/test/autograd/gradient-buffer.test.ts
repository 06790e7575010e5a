import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { describeOnDevices } from '../op-cases/support/devices.ts';

describeOnDevices((open) => {
  /** A leaf [1, 2] and the middle two elements of a flat buffer of 7s, where its gradient goes. */
  const withBuffer = (dtype: t.DType = 'float32') => {
    const device = open();
    const x = t.tensor([1, 2], { dtype, device, requiresGrad: true });
    const flat = t.full([4], 7, { dtype, device });
    x.setGradientBuffer(t.slice(flat, 0, 1, 3));
    return { x, flat };
  };

  it('the first gradient is written, later ones are added', () => {
    t.scope(() => {
      const { x, flat } = withBuffer();
      t.sum(t.mul(x, x)).backward();
      expect(flat.toFlatArray()).toEqual([7, 2, 4, 7]);
      expect(x.grad!.storage).toBe(flat.storage);
      t.sum(x).backward();
      expect(flat.toFlatArray()).toEqual([7, 3, 5, 7]);
      x.grad!.dispose();
      x.grad = null;
      t.sum(x).backward();
      expect(flat.toFlatArray()).toEqual([7, 1, 1, 7]);
    });
  });

  it('several paths to a leaf, NaN and views among them, and low precision', () => {
    t.scope(() => {
      const { x, flat } = withBuffer('bfloat16');
      const device = open();
      const columns = t.mul(t.expand(x, [3, 2]), t.tensor([NaN, 1], { dtype: 'bfloat16', device }));
      t.add(t.sum(columns), t.sum(t.slice(x, 0, 1, 2))).backward();
      expect(flat.toFlatArray()).toEqual([7, NaN, 4, 7]);
    });
  });

  it('the gradient is a handle of its own, and leaves nothing behind', () => {
    const device = open();
    t.sum(t.ones([1], { device })).dispose();
    const before = device.memoryStatistics().liveStorages;
    const x = t.tensor([1, 2], { device, requiresGrad: true });
    const flat = t.zeros([2], { device });
    x.setGradientBuffer(flat);
    t.scope(() => t.sum(x).backward());
    flat.dispose();
    expect(x.grad!.toFlatArray()).toEqual([1, 1]);
    x.grad!.dispose();
    x.grad = null;
    expect(() => t.scope(() => t.sum(x).backward())).toThrow(t.DisposedError);
    x.setGradientBuffer(null);
    t.scope(() => t.sum(x).backward());
    expect(x.grad!.toFlatArray()).toEqual([1, 1]);
    x.dispose();
    expect(device.memoryStatistics().liveStorages).toBe(before);
  });

  it('a leaf that is frozen for a while has its buffer and its hooks again', () => {
    t.scope(() => {
      const { x, flat } = withBuffer();
      const arrivals: boolean[] = [];
      const remove = x.onGradientAccumulated((_, wasCopied) => arrivals.push(wasCopied));
      const before = t.sum(t.mul(x, 3));
      x.requiresGrad_(false);
      expect([x.gradientBuffer, x.gradientHooks.length]).toEqual([null, 0]);
      x.requiresGrad_();
      t.add(before, t.sum(x)).backward();
      expect(flat.toFlatArray()).toEqual([7, 4, 4, 7]);
      expect(arrivals).toHaveLength(1);
      x.grad = null;
      // A buffer that is removed meanwhile does not come back.
      x.requiresGrad_(false);
      x.setGradientBuffer(null);
      remove();
      x.requiresGrad_();
      t.sum(x).backward();
      expect(x.grad!.toFlatArray()).toEqual([1, 1]);
      expect(flat.toFlatArray()).toEqual([7, 4, 4, 7]);
      expect(arrivals).toHaveLength(1);
    });
  });

  it('refuses buffers that are not like the gradient, and tensors without one', () => {
    t.scope(() => {
      const device = open();
      const x = t.zeros([2], { device, requiresGrad: true });
      const set = (buffer: t.Tensor) => () => x.setGradientBuffer(buffer);
      expect(set(t.zeros([3], { device }))).toThrow(t.ShapeError);
      expect(set(t.select(t.zeros([2, 2], { device }), 1, 0))).toThrow('a strided view [2]');
      expect(set(t.zeros([2], { device, dtype: 'float16' }))).toThrow('is float32, the buffer float16');
      const disposed = t.zeros([2], { device });
      disposed.dispose();
      expect(set(disposed)).toThrow(t.DisposedError);
      expect(() => t.zeros([2]).setGradientBuffer(t.zeros([2]))).toThrow(t.AutogradError);
      if (device.type === 'cuda') expect(set(t.zeros([2]))).toThrow('the buffer on cpu');
    });
  });
});
