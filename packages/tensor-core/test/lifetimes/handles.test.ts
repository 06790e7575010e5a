import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { collect, collectAndPoison, liveStorages } from './collect.ts';
import { devices } from './devices.ts';

describe.each(devices)('handles on %s', (_, device) => {
  const ones = (shape: t.Shape, requiresGrad = false) => t.ones(shape, { device, requiresGrad });

  it('kept outside every scope, release their storage once, while a view lives on', async () => {
    const view = (() => t.slice(t.keep(ones([8])), 0, 2, 6))();
    await collectAndPoison(device);
    expect([...view.toTypedArray()]).toEqual([1, 1, 1, 1]);
    view.dispose();
  });

  it('kept, moved and returned through scopes are freed once', async () => {
    await collect();
    const before = liveStorages(device);
    const kept = t.scope(() => t.scope(() => t.keep(t.scope(() => ones([4])))));
    const again = t.scope(() => t.keep(t.keep(kept)));
    expect(again).toBe(kept);
    kept.dispose();
    await collect();
    expect(liveStorages(device)).toBe(before);
  });

  // The emulated GPU multiplies only float32.
  it.runIf(device.type === 'cpu')(
    'of parameters that were cast by autocast stay right when garbage is collected before backward',
    async () => {
      await collect();
      const before = liveStorages(device);
      await (async () => {
        const w = ones([64, 64], true);
        const x = ones([1, 64]);
        const loss = t.autocast('bfloat16', () => t.sum(t.matmul(t.matmul(x, w), w)));
        await collectAndPoison(device);
        loss.backward();
        expect(w.grad!.toTypedArray()[0]).toBe(64 + 64);
      })();
      await collect();
      expect(liveStorages(device)).toBe(before);
    },
  );

  it('of graphs dropped without backward give all memory back', async () => {
    await collect();
    const before = liveStorages(device);
    (() => {
      const x = ones([4], true);
      for (let i = 0; i < 30; i++) t.exp(t.mul(x, x));
    })();
    await collect();
    expect(liveStorages(device)).toBe(before);
  });

  it.each([
    ['reshape', (x: t.Tensor) => t.reshape(x, x.shape)],
    ['cast', (x: t.Tensor) => t.cast(x, x.dtype)],
    ['contiguous', (x: t.Tensor) => t.contiguous(x)],
    ['expand', (x: t.Tensor) => t.expand(x, x.shape)],
    ['to(dtype)', (x: t.Tensor) => x.to(x.dtype)],
    ['to(device)', (x: t.Tensor) => x.to(x.device)],
    ['sum of no dimensions', (x: t.Tensor) => t.sum(x, { dims: [] })],
  ])('that %s gives are its own, also where nothing changes', (_name, same) => {
    t.scope(() => {
      const x = ones([2, 3], true);
      const y = t.mul(x, 2);
      for (const [input, slope] of [
        [x, 1],
        [y, 2],
      ] as const) {
        const result = same(input);
        expect(result).not.toBe(input);
        result.dispose();
        expect([...input.toTypedArray()]).toEqual(Array(6).fill(slope));
        x.grad = null;
        t.sum(same(input)).backward(undefined, { retainGraph: true });
        expect([...x.grad!.toTypedArray()]).toEqual(Array(6).fill(slope));
      }
    });
  });

  it('of a leaf that was disposed collect no gradient and leak none', () => {
    const before = liveStorages(device);
    t.scope(() => {
      const [x, w] = [ones([2], true), ones([2], true)];
      const y = t.sum(t.mul(x, w));
      x.dispose();
      y.backward();
      expect(x.grad).toBeNull();
      expect([...w.grad!.toTypedArray()]).toEqual([1, 1]);
    });
    expect(liveStorages(device)).toBe(before);
  });

  it('of gradients hold no more memory than their elements', () => {
    t.scope(() => {
      const x = ones([4], true);
      const wide = t.defineFunction<t.Tensor>({
        name: 'wide',
        forward: (_context, a) => t.mul(a!, 1),
        backward: () => t.slice(ones([1000]), 0, 100, 104),
      });
      t.sum(wide(x)).backward();
      expect(x.grad!.storage.byteLength).toBe(16);
      expect([...x.grad!.toTypedArray()]).toEqual([1, 1, 1, 1]);
    });
  });

  it('of leaves that are collected take their regions from the storage that lives on', async () => {
    const flat = ones([8]);
    const leaf = (from: number) => t.slice(flat, 0, from, from + 2).requiresGrad_();
    const disposed = leaf(0);
    const toggled = leaf(2);
    (() => {
      leaf(4);
      leaf(4).requiresGrad_(false);
      t.keep(t.scope(() => leaf(6)));
    })();
    await collect();
    expect(flat.storage.parameters.count).toBe(2);
    disposed.dispose();
    toggled.requiresGrad_(false);
    expect(flat.storage.holdsParameters).toBe(false);
    toggled.dispose();
    flat.dispose();
  });

  it('report what was leaked, and nothing that was disposed', async () => {
    await collect();
    const leaked: string[] = [];
    t.reportLeaks((description) => leaked.push(description));
    try {
      (() => ones([2, 5]))();
      ones([7]).dispose();
      await collect();
      expect(leaked).toEqual([`float32 [2, 5] on ${device.label}`]);
    } finally {
      t.reportLeaks(null);
    }
  });
});
