import { describe, expect, it } from 'vitest';
import {
  type Tensor,
  addInPlace,
  backward,
  compile,
  empty,
  mul,
  ones,
  sum,
  tensor,
} from '../../../src/index.ts';
import type { CudaDevice } from '../../../src/backends/cuda/device.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

const size = 300;
const seeds = Array.from({ length: 12 }, (_, i) => i + 1);

describe.skipIf(hostCompilerVersion() === null)('results and gradients of a replay', () => {
  const device = openEmulatedDevice();
  const filled = (value: number, on: CudaDevice = device, requiresGrad = false) =>
    tensor(new Array<number>(size).fill(value), { device: on, requiresGrad });

  /** Of `x`: x · weight as the result, x as the weight's gradient. */
  function step(on: CudaDevice = device) {
    const weight = filled(2, on, true);
    const f = compile((x: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      const product = mul(x, weight);
      backward(sum(product));
      return product.detach();
    });
    for (let i = 0; i < 3; i++) f(filled(i, on)).dispose();
    return { f, weight };
  }

  it('are not copied where they are released before the next run', () => {
    const { f } = step();
    const x = filled(1);
    f(x).dispose();
    device.resetPeakMemory();
    const { allocatedBytes } = device.memoryStatistics();
    for (let i = 0; i < 3; i++) f(x).dispose();
    expect(device.memoryStatistics().peakAllocatedBytes).toBe(allocatedBytes);
    f.dispose();
  });

  it('stay what they are while held, run after run, and after the executable is disposed', () => {
    const { f, weight } = step();
    const held: [Tensor, Tensor][] = [];
    for (let i = 5; i < 9; i++) held.push([f(filled(i)), weight.grad!.detach()]);
    f.dispose();
    held.forEach(([result, gradient], i) => {
      expect(result.toFlatArray()).toEqual(new Array(size).fill(2 * (i + 5)));
      expect(gradient.toFlatArray()).toEqual(new Array(size).fill(i + 5));
    });
    expect(weight.grad!.toFlatArray()[0]).toBe(8);
  });

  it('keep no arena after the executable is disposed', () => {
    const before = device.memorySegments().length;
    const { f, weight } = step();
    const result = f(filled(4));
    f.dispose();
    device.emptyCache();
    const own = device.memorySegments().flatMap(({ blocks }) => blocks);
    expect(device.memorySegments().length).toBeLessThanOrEqual(before + 1);
    expect(own.map(({ name }) => name)).not.toContain('arena of a compiled function');
    expect(result.toFlatArray()[0]).toBe(8);
    expect(weight.grad!.toFlatArray()[0]).toBe(4);
  });

  it('stay where they are if the executable is disposed on a device without room for them', () => {
    const mebibyte = 2 ** 20;
    const full = openEmulatedDevice(64 * mebibyte);
    const f = compile((x: Tensor) => mul(x, 2));
    const x = ones([4 * mebibyte], { device: full });
    for (let i = 0; i < 2; i++) f(x).dispose();
    const result = f(x);
    x.dispose();
    const rest = empty([8 * mebibyte], { device: full, dtype: 'float32' });
    f.dispose();
    rest.dispose();
    expect(result.toFlatArray().slice(-2)).toEqual([2, 2]);
    result.dispose();
    full.emptyCache();
    expect(full.memoryStatistics()).toMatchObject({ liveStorages: 0, reservedBytes: 0 });
  });

  it('can be an argument of the next run', () => {
    const { f } = step();
    let x = filled(1);
    for (let i = 0; i < 5; i++) x = f(x);
    expect(x.toFlatArray()[0]).toBe(32);
    f.dispose();
  });

  it('may be empty', () => {
    const f = compile((x: Tensor) => [mul(x, 2), mul(x, 3)] as const);
    const empty = tensor([], { device, dtype: 'float32' });
    for (let i = 0; i < 4; i++) expect(f(empty).map((y) => y.shape)).toEqual([[0], [0]]);
    f.dispose();
  });

  it.each(['result', 'gradient'] as const)(
    'stay in their place, a %s, for what works on it beside the ops, while the program runs on',
    (which) => {
      const { f, weight } = step();
      const result = f(filled(4));
      const watched = which === 'result' ? result : weight.grad!.detach();
      const value = which === 'result' ? 8 : 4;
      const release = watched.storage.hold({ start: 0, end: watched.byteLength }, 'all_reduce');
      const { address } = watched;
      for (let i = 5; i < 8; i++) f(filled(i)).dispose();
      expect(watched.address).toBe(address);
      expect(watched.toFlatArray()).toEqual(new Array(size).fill(value));
      release();
      f.dispose();
    },
  );

  it.each(seeds)('wait for other streams that read them, in order %i', (seed) => {
    const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
    const { f, weight } = step(on);
    const other = on.createStream();
    const seen: Tensor[] = [];
    for (let i = 5; i < 9; i++) {
      const result = f(filled(i, on));
      const gradient = weight.grad!.detach();
      other.waitFor(on.recordEvent());
      seen.push(...on.onStream(other, () => [mul(result, 3), mul(gradient, 3)]));
      result.dispose();
      gradient.dispose();
    }
    on.synchronize();
    const first = seen.map((x) => x.toFlatArray()[0]);
    expect(first).toEqual([5, 6, 7, 8].flatMap((i) => [6 * i, 3 * i]));
  });

  it.each(seeds)('come from the arguments that a run on another stream was given, in order %i', (seed) => {
    const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
    const { f } = step(on);
    const other = on.createStream();
    const results: Tensor[] = [];
    for (let i = 5; i < 9; i++) {
      const x = filled(i, on);
      other.waitFor(on.recordEvent());
      results.push(on.onStream(other, () => f(x)));
      x.dispose();
      filled(99, on).dispose();
    }
    on.synchronize();
    expect(results.map((y) => y.toFlatArray()[0])).toEqual([10, 12, 14, 16]);
  });

  it.each(seeds)('may be read on another stream that waited for their run, in order %i', (seed) => {
    const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
    const { f } = step(on);
    const other = on.createStream();
    const seen = [5, 6, 7, 8].map((i) => {
      const result = f(filled(i, on));
      other.waitFor(on.recordEvent());
      f(filled(100, on)).dispose();
      return on.onStream(other, () => mul(result, 3).toFlatArray()[0]);
    });
    expect(seen).toEqual([30, 36, 42, 48]);
  });

  it.each(seeds)('keep what another stream writes to them, in order %i', (seed) => {
    const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
    const { f } = step(on);
    const other = on.createStream();
    const seen = [5, 6, 7, 8].map((i) => {
      const result = f(filled(i, on));
      const three = filled(3, on);
      other.waitFor(on.recordEvent());
      on.onStream(other, () => addInPlace(result, three));
      f(filled(100, on)).dispose();
      on.stream.waitFor(other.recordEvent());
      return result.toFlatArray()[0];
    });
    expect(seen).toEqual([13, 15, 17, 19]);
  });

  it.each(seeds)('wait for the stream that the executable ran on first, in order %i', (seed) => {
    const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
    const { f } = step(on);
    const other = on.createStream();
    const given = [5, 6, 7, 8].map((i) => filled(i, on));
    other.waitFor(on.recordEvent());
    const seen = given.map((x) => {
      const result = on.onStream(other, () => f(x));
      on.stream.waitFor(other.recordEvent());
      const read = mul(result, 3);
      result.dispose();
      return read;
    });
    expect(seen.map((y) => y.toFlatArray()[0])).toEqual([30, 36, 42, 48]);
  });

  it.each(seeds)(
    'live on where the executable is disposed before its last run has ended, in order %i',
    (seed) => {
      const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
      const { f } = step(on);
      const other = on.createStream();
      const x = filled(5, on);
      other.waitFor(on.recordEvent());
      const result = on.onStream(other, () => f(x));
      f.dispose();
      on.synchronize();
      expect(result.toFlatArray()).toEqual(new Array(size).fill(10));
    },
  );

  it.each(seeds)(
    'added to on another stream, leave alone what comes where they were, in order %i',
    (seed) => {
      const on = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
      const weight = filled(2, on, true);
      const f = compile((x: Tensor) => backward(sum(mul(x, weight))));
      const x = filled(1, on);
      for (let i = 0; i < 3; i++) f(x);
      const other = on.createStream();
      const fresh = [0, 1, 2, 3].flatMap(() => {
        other.waitFor(on.recordEvent());
        on.onStream(other, () => f(x));
        weight.grad!.dispose();
        weight.grad = null;
        const made = Array.from({ length: 20 }, () => filled(7, on));
        on.synchronize();
        weight.grad = filled(0, on);
        return made;
      });
      expect(fresh.filter((y) => y.toFlatArray()[0] !== 7)).toEqual([]);
    },
  );
});
