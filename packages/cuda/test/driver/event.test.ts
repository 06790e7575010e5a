import { describe, expect, it } from 'vitest';
import { CudaDriver, type DriverFunctions } from '../../src/driver/driver.ts';
import { EventPool } from '../../src/driver/event.ts';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';

function fakePool() {
  const created: number[] = [];
  const recorded: [number, number][] = [];
  const driver: CudaDriver = new CudaDriver(
    {
      cuEventCreate: (_: number, flags: number) => {
        driver.result.writeInt64(0, 100 + created.push(flags));
        return 0;
      },
      cuEventRecord: (event: number, stream: number) => {
        recorded.push([event, stream]);
        return 0;
      },
      cuEventSynchronize: () => 0,
      cuEventElapsedTime: () => 0,
    } as unknown as DriverFunctions,
    String,
  );
  return { created, recorded, pool: new EventPool(driver) };
}

const stream = 7;

describe('EventPool', () => {
  it('gives every live event a handle of its own', () => {
    const { pool, created, recorded } = fakePool();
    const live = Array.from({ length: 50 }, (_, i) => pool.record(stream, i % 2 === 0));
    expect(new Set(live.map(({ handle }) => handle)).size).toBe(50);
    expect(recorded).toEqual(live.map(({ handle }) => [handle, stream]));
    expect(created).toHaveLength(50);
  });

  it('uses the handle of a disposed event once more, for one of the same kind', () => {
    const { pool, created } = fakePool();
    const [timed, untimed] = [pool.record(stream, true), pool.record(stream, false)];
    expect(created).toEqual([0, 2]);
    const handles = [timed.handle, untimed.handle];
    for (const event of [timed, timed, untimed, untimed]) event.dispose();
    const again = [pool.record(stream, false), pool.record(stream, true), pool.record(stream, true)];
    expect(again.map(({ handle }) => handle).slice(0, 2)).toEqual(handles.reverse());
    expect(handles).not.toContain(again[2]!.handle);
    expect(created).toEqual([0, 2, 0]);
  });

  it('refuses to use what was disposed of', () => {
    const { pool } = fakePool();
    const event = pool.record(stream, true);
    event.dispose();
    for (const use of [() => event.handle, () => event.synchronize(), () => event.hasCompleted()])
      expect(use).toThrow(/disposed of/);
  });

  it('measures no time with events recorded without', () => {
    const { pool } = fakePool();
    const [timed, untimed] = [pool.record(stream, true), pool.record(stream, false)];
    expect(() => untimed.elapsedMs(timed)).toThrow(/recorded with timing/);
    expect(() => timed.elapsedMs(untimed)).toThrow(/recorded with timing/);
    expect(() => timed.elapsedMs(timed)).not.toThrow();
  });
});

describe('CudaEvent', () => {
  it('completes when what stands before it has run', () => {
    const device = openEmulatedGpu();
    const event = device.recordEvent({ timing: false });
    expect(event.hasCompleted()).toBe(false);
    event.synchronize();
    expect(event.hasCompleted()).toBe(true);
  });

  it('measures from one stream to another', () => {
    const device = openEmulatedGpu();
    const other = device.createStream();
    const start = other.recordEvent();
    device.stream.waitFor(start);
    expect(device.recordEvent().elapsedMs(start)).toBeGreaterThanOrEqual(0);
  });
});
