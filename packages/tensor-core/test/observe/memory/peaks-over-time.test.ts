import { expect, it } from 'vitest';
import { peakMemory, reservedOverTime } from '../../../src/index.ts';
import type { Allocation, MemoryEvent } from '../../../src/observe/memory/record.ts';

const allocation = (address: number, bytes: number, startUs: number | null): Allocation => ({
  ...{ address, bytes, requestedBytes: bytes, kind: 'storage', startUs, endUs: null },
  ...{ range: [], phase: null, op: null, dtype: null, shape: null, stack: [] },
});
const held = allocation(1, 40, null);
const [small, large] = [allocation(2, 30, 1), allocation(3, 500, 3)];

it('of a phase that opens twice counts what was held when it opened the second time', () => {
  const events: MemoryEvent[] = [
    { action: 'allocate', timeUs: 1, phase: 'forward', allocation: small },
    { action: 'enter', timeUs: 2, phase: 'backward' },
    { action: 'allocate', timeUs: 3, phase: 'backward', allocation: large },
    { action: 'free', timeUs: 5, phase: 'forward', allocation: large },
  ];
  const peak = peakMemory({ allocations: [held, small, large], events }, 'forward');
  // Largest first, in whatever order they were made.
  expect(peak).toEqual({ bytes: 570, timeUs: 3, live: [large, held, small] });
});

it('of a recording without events is what was held before', () => {
  expect(peakMemory({ allocations: [small, held].slice(1), events: [] })).toEqual({
    ...{ bytes: 40, timeUs: 0 },
    live: [held],
  });
});

it('reserved bytes change where the allocator takes from the system or gives back, and nowhere else', () => {
  const segment = { phase: null, address: 4096, stack: [] };
  const events: MemoryEvent[] = [
    { action: 'reserve', timeUs: 2, bytes: 100, ...segment },
    { action: 'allocate', timeUs: 3, phase: null, allocation: small },
    { action: 'enter', timeUs: 4, phase: 'backward' },
    { action: 'free', timeUs: 5, phase: null, allocation: small },
    { action: 'release', timeUs: 6, bytes: 70, ...segment },
  ];
  expect(reservedOverTime({ reservedBytesBefore: 7, events })).toEqual([
    [0, 7],
    [2, 107],
    [6, 37],
  ]);
});
