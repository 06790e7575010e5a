import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const made = ({ allocations }: t.MemoryRecord) => allocations.filter(({ startUs }) => startUs !== null);
const makes = () => void t.scope(() => void t.exp(t.ones([4])));

describe('recordMemory', () => {
  it('goes on for the first recording where a second is refused', () => {
    const record = t.recordMemory(() => {
      expect(() => t.recordMemory(makes)).toThrow(t.DeviceError);
      makes();
    });
    expect(made(record).map(({ op }) => op)).toContain('exp');
  });

  it('reports times in microseconds since it began', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, 20);
    await promise;
    const startMs = performance.now();
    const record = t.recordMemory(() => {
      makes();
      for (const until = performance.now() + 5; performance.now() < until;);
      makes();
    });
    const wholeUs = (performance.now() - startMs) * 1000;
    const starts = made(record).map(({ startUs }) => startUs!);
    expect(starts.at(-1)! - starts[0]!).toBeGreaterThanOrEqual(5000);
    expect(record.durationUs).toBeGreaterThanOrEqual(starts.at(-1)!);
    expect(wholeUs).toBeGreaterThanOrEqual(record.durationUs);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(record.startedAtMs).toBeLessThanOrEqual(Date.now());
    expect(record.startedAtMs).toBeGreaterThan(Date.now() - 60_000);
  });

  it('notes each phase where it opens, not the ranges in it', () => {
    const { events } = t.recordMemory(() => {
      t.range('forward', () => t.range('layer', () => t.range('backward', () => 0)));
      t.range('evaluation', () => 0);
      t.range('backward', () => 0);
    });
    expect(events.map(({ action, phase }) => [action, phase])).toEqual([
      ['enter', 'forward'],
      ['enter', 'backward'],
    ]);
    const after: string[] = [];
    const stop = t.onRange({ enter: (name) => void after.push(name), exit: () => undefined });
    t.range('forward', () => 0);
    stop();
    expect(after).toEqual(['forward']);
    expect(events).toHaveLength(2);
  });

  it('keeps no calls at a depth of 0', () => {
    const record = t.recordMemory(
      () => {
        makes();
        t.range('forward', makes);
      },
      { stackDepth: 0 },
    );
    expect(made(record).map(({ stack }) => stack.length)).toEqual(made(record).map(() => 0));
    expect(made(record).length).toBeGreaterThan(2);
  });

  it('attributes what a phase makes to the calls that opened it, and what is made outside to those that began the recording', () => {
    const callers = (stack: readonly { name: string }[]) =>
      ['opensPhase', 'callsOp', 'begins'].filter((name) => stack.some((frame) => frame.name.includes(name)));
    const inner = function callsOp() {
      makes();
    };
    const record = (function begins() {
      return t.recordMemory(() => {
        (function opensPhase() {
          t.range('backward', inner);
        })();
        inner();
        t.range('forward', inner);
      });
    })();
    const found = made(record).map(({ phase, stack }) => [phase, ...callers(stack)].join(' '));
    expect([...new Set(found)]).toEqual([
      'backward opensPhase begins',
      ' callsOp begins',
      'forward callsOp begins',
    ]);
  });

  it('reports who made the allocator ask the system for memory', () => {
    const device = openEmulatedDevice();
    const record = t.recordMemory(
      function asks() {
        device.free(device.allocate(100));
      },
      { device },
    );
    const askers = record.events.flatMap((event) =>
      event.action === 'reserve' ? [event.stack.some(({ name }) => name.includes('asks'))] : [],
    );
    expect(askers).toEqual([true]);
  });
});
