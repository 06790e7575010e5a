import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { openCudaDevice } from '../../src/backends/cuda/open-device.ts';
import { readSnapshot, torchPython } from '../observe/memory/snapshot-reader.ts';

/** A step of a small network: every kind of allocation that training makes. */
function trainStep(weights: readonly t.Tensor[], x: t.Tensor): void {
  t.scope(() => {
    const loss = t.range('forward', () => {
      let h = x;
      for (const [i, w] of weights.entries()) h = t.range(`layers.${i}`, () => t.softmax(t.matmul(h, w), -1));
      return t.sum(h);
    });
    t.range('backward', () => loss.backward());
    t.range('optimizer', () => {
      for (const w of weights) t.addInPlace(w.detach(), w.grad!);
    });
    for (const w of weights) {
      w.grad?.dispose();
      w.grad = null;
    }
  });
}

/** A network that has run once; made by the first test, as there may be no GPU. */
function makeNetwork() {
  const device = openCudaDevice(0);
  const generator = new t.Generator(0);
  const weights = Array.from({ length: 24 }, () =>
    t.randn([512, 512], { device, generator }).requiresGrad_(),
  );
  const x = t.randn([256, 512], { device, generator });
  trainStep(weights, x);
  device.synchronize();
  return { device, weights, x };
}

let made: ReturnType<typeof makeNetwork> | null = null;
const network = () => (made ??= makeNetwork());

describe('recordMemory', () => {
  it('sums up to what the device counts', () => {
    const { device, weights, x } = network();
    device.emptyCache();
    device.resetPeakMemory();
    const record = t.recordMemory(() => trainStep(weights, x), { device });
    const statistics = device.memoryStatistics();
    expect(t.peakMemory(record)!.bytes).toBe(statistics.peakAllocatedBytes);
    const held = record.allocations.filter(({ endUs }) => endUs === null);
    expect(held.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(statistics.allocatedBytes);
    expect(t.reservedOverTime(record).at(-1)![1]).toBe(statistics.reservedBytes);
    expect(record.segments.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(statistics.reservedBytes);
    expect(record.events.some(({ action }) => action === 'reserve')).toBe(true);
    const phases = new Set(record.allocations.map(({ phase }) => phase));
    expect(phases).toEqual(new Set([null, 'forward', 'backward']));
    const fresh = record.allocations.filter(({ startUs }) => startUs !== null);
    expect(fresh.every(({ stack }) => stack.length > 0)).toBe(true);
    expect(fresh.some(({ range }) => range.includes('layers.3') && range[0] === 'backward')).toBe(true);
  });

  it.skipIf(!torchPython)('writes a snapshot that torch.cuda._memory_viz draws', () => {
    const { device, weights, x } = network();
    const kept = t.recordMemory(() => t.exp(x), { device });
    const small = readSnapshot(t.memorySnapshot(kept));
    expect(small.live).toEqual([256 * 512 * 4]);
    expect(small.frames[0]).toBe('exp');
    const whole = readSnapshot(t.memorySnapshot(t.recordMemory(() => trainStep(weights, x), { device })));
    console.log(`read and drawn by torch ${whole.torch}, ${whole.actions.length} trace entries`);
    expect(small.drawn).toBe(true);
    kept.result.dispose();
  });

  it('costs little when on, and nothing to speak of when off', () => {
    const { device, weights, x } = network();
    const timed = () => {
      device.synchronize();
      const start = performance.now();
      trainStep(weights, x);
      device.synchronize();
      return performance.now() - start;
    };
    const off: number[] = [];
    const on: number[] = [];
    for (let i = 0; i < 10; i++) {
      off.push(timed());
      on.push(t.recordMemory(timed, { device }).result);
    }
    const median = (samples: number[]) => samples.toSorted((a, b) => a - b)[samples.length >> 1]!;
    const { events } = t.recordMemory(() => trainStep(weights, x), { device });
    const perEventUs = ((median(on) - median(off)) * 1000) / events.length;
    console.log(
      `step: off ${median(off).toFixed(2)} ms, on ${median(on).toFixed(2)} ms, ` +
        `${perEventUs.toFixed(1)} us for each of ${events.length} events`,
    );
    expect(perEventUs).toBeLessThan(100);
  });
});
