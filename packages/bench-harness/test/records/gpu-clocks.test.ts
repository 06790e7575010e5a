// Is alone in a process: a stand-in for NVIDIA's library stays loaded.
import { setTimeout as sleep } from 'node:timers/promises';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { gpuOfNvml, standInForNvml } from '../../../cuda/test/driver/stand-in-for-nvml.ts';
import { gpuThrottlingOf } from '../../src/records/gpu-clocks.ts';
import { watchThrottling } from '../../src/records/watch-throttling.ts';

type Readings = Parameters<typeof gpuThrottlingOf>[0];
type Limits = NonNullable<Readings[number]['limits']>;

/** Readings with these limits, or null for none known, and counters that grow from one to the next. */
const readings = (
  limits: readonly (Limits | null)[],
  [powerNs, thermalNs]: readonly [number | null, number | null] = [null, null],
): Readings =>
  limits.map((each, i) => ({
    limits: each,
    powerNs: powerNs === null ? null : 1e9 + powerNs * i,
    thermalNs: thermalNs === null ? null : 1e9 + thermalNs * i,
  }));
const none: Limits = [];

describe('what held the clocks of a GPU down', () => {
  it('is what the driver counts of power and heat, and what readings meanwhile saw of its hardware', () => {
    const seen = readings([none, none, ['hardware'], none, none, none], [1e8, 2e7]);
    expect(gpuThrottlingOf(seen, 1000)).toEqual({ power: 0.5, thermal: 0.1, hardware: 0.25 });
  });

  it('is the share of readings where the driver counts nothing; the first and the last are of an idle GPU', () => {
    const seen = readings([['power'], ['power'], ['power', 'thermal'], none, null, none, ['thermal']]);
    expect(gpuThrottlingOf(seen, 1000)).toEqual({ power: 0.5, thermal: 0.25, hardware: 0 });
    const short = readings([['power'], ['power']], [5e8, null]);
    expect(gpuThrottlingOf(short, 1000)).toEqual({ power: 0.5, thermal: null, hardware: null });
  });

  it('is not known of counters that go backwards, or count more than the time there was', () => {
    expect(gpuThrottlingOf(readings([none, none], [-1, 2e9]), 1000)).toBeNull();
    expect(gpuThrottlingOf(readings([none, none], [1.04e9, -1]), 1000)).toEqual({
      ...{ power: 1, thermal: null, hardware: null },
    });
    expect(gpuThrottlingOf(readings([none, none, none], [-1, -1]), 1000)).toEqual({
      ...{ power: 0, thermal: 0, hardware: 0 },
    });
  });

  it('is not known of a GPU that has gone, or says nothing', () => {
    const gone = [...readings([none], [1, 1]), ...readings([null])];
    expect(gpuThrottlingOf(gone, 1000)).toBeNull();
    expect(gpuThrottlingOf(readings([null, null, null]), 1000)).toBeNull();
  });
});

const gpu = { label: 'cuda:0', type: 'cuda', name: 'A GPU', properties: { pciBusId: gpuOfNvml } } as const;

describe.skipIf(!hostCompilerVersion())('watching a GPU (needs g++)', () => {
  it('reads it while a cell runs, and no longer', async () => {
    const nvml = standInForNvml();
    onTestFinished(() => nvml.end());
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    nvml.set(0x4, 5, 7);
    const watch = await watchThrottling(gpu);
    nvml.set(0x4, 5, 7);
    vi.advanceTimersByTime(1000);
    nvml.set(0x80, 5, 7);
    vi.advanceTimersByTime(3000);
    await sleep(100);
    nvml.set(0, 5 + 2e7, 7);
    const { gpu: seen } = watch();
    expect(seen).toMatchObject({ thermal: 0, hardware: 0.75 });
    // 20 ms of at least 100.
    expect(seen!.power).toBeGreaterThan(0);
    expect(seen!.power).toBeLessThanOrEqual(0.2);
    expect(vi.getTimerCount()).toBe(0);
    const unknown = await watchThrottling({ ...gpu, properties: { pciBusId: '0000:99:00.0' } });
    expect(unknown().gpu).toBeNull();
  });

  it('is not done for a CPU, nor for a GPU whose place is not known', async () => {
    for (const type of ['cpu', 'cuda'] as const) {
      const watch = await watchThrottling({ ...gpu, type, properties: {} });
      expect(watch().gpu).toBeNull();
    }
  });
});
