import { afterEach, describe, expect, it, vi } from 'vitest';
import * as t from '../../../src/index.ts';
import { type Tensor, compile } from '../../../src/index.ts';
import { CudaGraph } from '@roofline/cuda/parts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

const values = (x: Tensor | null) => x && x.toFlatArray();
const size = 300;

describe.skipIf(hostCompilerVersion() === null)('memory that a replay is given', () => {
  const device = openEmulatedDevice();
  const filled = (value: number, on = device) => t.full([size], value, { device: on });
  const captured = vi.spyOn(CudaGraph, 'capture');
  const copied = vi.spyOn(device.stream, 'copy');
  afterEach(() => void [captured, copied].map((spy) => spy.mockClear()));

  it('may be elsewhere each time: the graph reads a copy of an argument, and a gradient that stays where it is', () => {
    const w = t.ones([size], { device }).requiresGrad_();
    const f = compile((x: Tensor) => t.add(x, w.grad!));
    w.grad = filled(5);
    const given = [1, 2, 3, 4, 5].map((value) => filled(value));
    const results = given.slice(0, 2).map((x) => f(x));
    captured.mockClear();
    copied.mockClear();
    for (const x of given.slice(2)) results.push(f(x));
    expect(captured).not.toHaveBeenCalled();
    // Those of the results that are held until the next run, besides.
    expect(copied).toHaveBeenCalledTimes(3 + 3);
    expect(results.map((y) => values(y)![0])).toEqual([6, 7, 8, 9, 10]);
    f.dispose();
  });

  it.each([false, true])(
    'is written and then replaced, a gradient; its holder sees the write: %s',
    (isHeld) => {
      const run = (wrap: (fn: (x: Tensor) => void) => (x: Tensor) => void) => {
        const w = t.ones([size], { device }).requiresGrad_();
        w.grad = filled(1);
        const held: Tensor[] = [];
        const step = wrap((x) => {
          const found = w.grad!;
          t.addInPlace(found, x);
          w.grad = t.keep(t.mul(found, 2));
        });
        return [1, 2, 3, 4].map((value) => {
          const before = w.grad!;
          if (isHeld) held.push(before);
          step(filled(value));
          if (!isHeld) before.dispose();
          return [values(w.grad)![0], held.map((x) => values(x)![0])];
        });
      };
      expect(run((fn) => compile(fn))).toEqual(run((fn) => fn));
    },
  );

  it('is not needed for a result that no op has made', () => {
    const f = compile((x: Tensor) => [t.mul(x, 2), t.empty([7], { device })]);
    for (let call = 0; call < 4; call++) {
      const [double, nothing] = f(filled(call));
      expect([values(double!)![0], nothing!.shape]).toEqual([2 * call, [7]]);
    }
    f.dispose();
  });

  it('is called the arena of the function, by its name if it has one', () => {
    const on = openEmulatedDevice();
    const names = () => on.memorySegments().flatMap(({ blocks }) => blocks.map(({ name }) => name));
    const functions = [
      (x: Tensor) => t.sum(t.softmax(x, -1)),
      { step: (x: Tensor) => t.sum(t.softmax(x, -1)) }.step,
    ];
    for (const f of functions.map((fn) => compile(fn))) for (let call = 0; call < 2; call++) f(filled(1, on));
    expect(names()).toContain('arena of a compiled function');
    expect(names()).toContain('arena of step');
  });

  it('takes the place of what the traced call has left in the cache', () => {
    const on = openEmulatedDevice(2 ** 28);
    const f = compile((x: Tensor) => t.sum(t.exp(t.expand(x, [2 ** 20]))));
    const x = t.ones([1], { device: on });
    f(x).dispose();
    const cached = on.memoryStatistics();
    expect(cached.reservedBytes - cached.allocatedBytes).toBeGreaterThanOrEqual(2 ** 22);
    f(x).dispose();
    const { reservedBytes, allocatedBytes } = on.memoryStatistics();
    expect(reservedBytes - allocatedBytes).toBeLessThan(2 ** 21);
    f.dispose();
  });
});
