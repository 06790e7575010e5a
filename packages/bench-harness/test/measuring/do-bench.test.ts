import { describe, expect, it } from 'vitest';
import { doBench } from '../../src/measuring/do-bench.ts';
import { FakeDevice } from '../fixtures/fake-device.ts';

describe('doBench', () => {
  it('fills the times asked for with calls, by an estimate of five', () => {
    const device = new FakeDevice();
    const log: string[] = [];
    const samples = doBench(
      device,
      () => {
        log.push('work');
        device.run(2);
      },
      { warmupMs: 7, repeatMs: 13, beforeEach: () => log.push('clear') },
    );
    // One call, five to estimate, 7 / 2 to warm up, 13 / 2 that count; each is prepared for.
    expect(samples).toEqual(Array(6).fill(2));
    const calls = 1 + 5 + 3 + 6;
    expect(log).toEqual(Array.from({ length: calls }, () => ['clear', 'work']).flat());
  });

  it('calls at least once where a call outlasts the times', () => {
    const device = new FakeDevice();
    let calls = 0;
    const work = () => device.run(50 + calls++);
    expect(doBench(device, work, { warmupMs: 1, repeatMs: 1 })).toEqual([57]);
  });

  it('flushes before each call that counts and in the estimate, outside of its time', () => {
    const device = new FakeDevice();
    let flushes = 0;
    const flush = () => {
      flushes++;
      device.run(3);
    };
    const samples = doBench(device, () => device.run(2), { warmupMs: 5, repeatMs: 10, flush });
    expect(samples).toEqual([2, 2]);
    expect(flushes).toBe(1 + 5 + 2);
  });

  it('does not wait between calls, so that the host runs ahead of the device', () => {
    const device = new FakeDevice();
    const waits: boolean[] = [];
    const work = () => {
      waits.push(device.isIdle);
      device.run(4, 0.5);
    };
    // The launch takes the host 0.5, which is hidden behind the call before from the second one on.
    expect(doBench(device, work, { warmupMs: 1, repeatMs: 13 })).toEqual([4, 4, 4]);
    expect(waits.slice(-3)).toEqual([false, false, false]);
  });
});
