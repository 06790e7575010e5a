import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { cudaDevice } from '../../src/kernel-api.ts';

const mebibyte = 2 ** 20;
const gpu = () => cudaDevice(t.device('cuda'));
const ordering = { timing: false } as const;

describe('onStream', () => {
  it('runs ops on another stream, in the order that events give', () => {
    const device = gpu();
    const other = device.createStream();
    t.scope(() => {
      for (let round = 1; round <= 20; round++) {
        const x = t.full([8 * mebibyte], round, { device });
        other.waitFor(device.recordEvent(ordering));
        const y = device.onStream(other, () => t.add(x, 1));
        device.stream.waitFor(other.recordEvent(ordering));
        const sum = t.sum(y);
        expect(sum.item()).toBe((round + 1) * 8 * mebibyte);
        for (const tensor of [x, y, sum]) tensor.dispose();
      }
    });
  });

  it('measures each stream by events of its own', () => {
    const device = gpu();
    const other = device.createStream();
    t.scope(() => {
      const x = t.ones([32 * mebibyte], { device });
      other.waitFor(device.recordEvent(ordering));
      const ms = device.onStream(other, () => {
        const start = device.recordEvent();
        for (let i = 0; i < 5; i++) t.add(x, 1).dispose();
        return device.recordEvent().elapsedMs(start);
      });
      expect(ms).toBeGreaterThan(0.05);
      const event = device.recordEvent(ordering);
      device.synchronize();
      expect(event.hasCompleted()).toBe(true);
      expect(() => event.elapsedMs(event)).toThrow(/with timing/);
    });
  });

  it('multiplies on two streams at once, each with scratch of its own', () => {
    const device = gpu();
    const streams = [device.stream, device.createStream(), device.createStream()];
    t.scope(() => {
      const a = t.randn([1000, 900], { device, seed: 1 });
      const b = t.randn([900, 1100], { device, seed: 2 });
      const expected = t.matmul(a, b).toTypedArray();
      const ready = device.recordEvent(ordering);
      for (let round = 0; round < 10; round++) {
        const results = streams.map((stream) => {
          stream.waitFor(ready);
          return device.onStream(stream, () => t.matmul(a, b));
        });
        device.synchronize();
        for (const result of results) {
          expect(result.toTypedArray()).toEqual(expected);
          result.dispose();
        }
      }
    });
  });
});

describe('memory that two streams use', () => {
  it('is handed out again only after both', () => {
    const device = gpu();
    const other = device.createStream();
    const count = 64 * mebibyte;
    t.scope(() => {
      for (let round = 1; round <= 10; round++) {
        const x = t.full([count], round, { device });
        other.waitFor(device.recordEvent(ordering));
        const sums = device.onStream(other, () => Array.from({ length: 4 }, () => t.sum(x)));
        x.dispose();
        const overwritten = t.full([count], -1, { device });
        for (const sum of sums) {
          expect(device.onStream(other, () => sum.item())).toBe(round * count);
          sum.dispose();
        }
        overwritten.dispose();
      }
    });
    device.emptyCache();
  });
});

describe('withPool', () => {
  it('gives memory of its own, and takes it back', () => {
    const device = gpu();
    device.emptyCache();
    const before = device.memoryStatistics().reservedBytes;
    const pool = device.createPool();
    const y = device.withPool(pool, () => t.scope(() => t.add(t.ones([16 * mebibyte], { device }), 1)));
    expect(pool.allocatedBytes).toBe(64 * mebibyte);
    expect(t.scope(() => t.sum(y).item())).toBe(32 * mebibyte);
    device.emptyCache();
    expect(device.memoryStatistics().reservedBytes).toBe(before + pool.reservedBytes);
    y.dispose();
    pool.release();
    device.emptyCache();
    expect(device.memoryStatistics().reservedBytes).toBe(before);
  });
});

describe('the launcher', () => {
  const op = (grid: readonly [number, number, number], count: number) =>
    t.defineOp({
      name: 'faulty launch',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch: (context, [x], [y]) =>
          context
            .kernel({
              source: new URL('../kernel-api/softplus-package/kernels/softplus_rows.cu', import.meta.url),
              name: 'softplus_rows',
              parameters: 'ppplif',
              defines: {
                ELEMENT: 'float',
                VECTOR_LENGTH: 1,
                ROW_THREADS: 32,
                ROW_VECTORS: 1,
                BLOCK_THREADS: 32,
              },
            })
            .launch(grid, 32, 0, [x!.address, y!.address, context.workspace(4), 1, count, 1]),
      },
      cpu: { kind: 'host', run: () => undefined },
    });

  it('refuses what the GPU would wrap or refuse, and works on', () => {
    const device = gpu();
    t.scope(() => {
      const x = t.zeros([8], { device });
      expect(() => t.applyOne(op([1, 1, 1], 2 ** 32 + 8), [x], undefined)).toThrow(/parameter 4.*4294967304/);
      expect(() => t.applyOne(op([0, 1, 1], 8), [x], undefined)).toThrow(/grid of \[0, 1, 1\]/);
      const y = t.applyOne(op([1, 1, 1], 8), [x], undefined);
      for (const value of y.toTypedArray()) expect(Number(value)).toBeCloseTo(Math.log(2), 6);
    });
  });
});
