import { expect, it } from 'vitest';
import { peakMemory } from '../../../src/index.ts';
import type { Allocation, MemoryEvent } from '../../../src/observe/memory/record.ts';

const allocation = (address: number, bytes: number, startUs: number | null): Allocation => ({
  ...{ address, bytes, requestedBytes: bytes, kind: 'storage', startUs, endUs: null },
  ...{ range: [], phase: null, op: null, dtype: null, shape: null, stack: [] },
});

const held = allocation(1, 100, null);
const [a, b, c] = [allocation(2, 30, 1), allocation(3, 50, 3), allocation(4, 10, 6)] as const;
const event = (
  action: 'allocate' | 'free',
  timeUs: number,
  phase: string | null,
  of: Allocation,
): MemoryEvent => ({
  ...{ action, timeUs, phase },
  allocation: of,
});
const allocations = [held, a, b, c];
const events: MemoryEvent[] = [
  event('allocate', 1, 'forward', a),
  event('free', 2, 'forward', a),
  event('allocate', 3, 'forward', b),
  { action: 'enter', timeUs: 4, phase: 'backward' },
  event('free', 5, 'backward', b),
  event('allocate', 6, 'backward', c),
];

it('is the most that was held at a time, with what was held then', () => {
  expect(peakMemory({ allocations, events })).toEqual({ bytes: 150, timeUs: 3, live: [held, b] });
});

it('of a phase counts what was held when the phase began', () => {
  expect(peakMemory({ allocations, events }, 'backward')).toEqual({ bytes: 150, timeUs: 3, live: [held, b] });
  expect(peakMemory({ allocations, events }, 'forward')!.bytes).toBe(150);
  const early = { allocations: [held, a], events: [event('allocate', 1, 'forward', a)] };
  expect(peakMemory(early, 'forward')).toEqual({ bytes: 130, timeUs: 1, live: [held, a] });
});

it('is what was held before where nothing more is', () => {
  const freed = { allocations: [held], events: [event('free', 1, null, held)] };
  expect(peakMemory(freed)).toEqual({ bytes: 100, timeUs: 0, live: [held] });
  expect(peakMemory(freed, 'forward')).toBeNull();
});
