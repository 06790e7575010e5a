import type { Allocation, MemoryEvent } from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { summarizeStep } from '../../../src/benchmarks/memory/summarize-step.ts';
import { toyCell } from '../../fixtures/records.ts';

const cell = { ...toyCell, execution: 'eager' } as const;

const allocation = (
  bytes: number,
  startUs: number | null,
  changes: Partial<Allocation> = {},
): Allocation => ({
  ...{ address: bytes, requestedBytes: bytes, bytes, kind: startUs === null ? null : 'storage' },
  ...{ startUs, endUs: null, range: [], phase: null, op: null, dtype: null, shape: null, stack: [] },
  ...changes,
});

/** A step with what was held before, and what happens in its phases. */
function summarize(
  held: readonly Allocation[],
  events: readonly (readonly [phase: string, action: 'allocate' | 'free', allocation: Allocation])[],
  parameterCount: number,
) {
  const made = events.flatMap(([, action, each]) => (action === 'allocate' ? [each] : []));
  const record = {
    ...{ result: undefined, device: 'cuda:0', startedAtMs: 0, durationUs: 100 },
    allocations: [...held, ...made],
    events: events.map(([phase, action, each], timeUs): MemoryEvent => ({
      ...{ action, timeUs, phase, allocation: each },
    })),
    ...{ reservedBytesBefore: 1000, segments: [] },
  };
  return summarizeStep(
    cell,
    { record: record as never, saved: [], peakAllocatedBytes: 0, peakReservedBytes: 0 },
    parameterCount,
  );
}

const sizes = ({ phases }: ReturnType<typeof summarize>) =>
  phases.map(({ phase, bytes, live }) => [phase, bytes, live.map((share) => [share.what, share.bytes])]);

it('reports no more weights in a phase than are still held in it', () => {
  const [embedding, rest, moments] = [allocation(300, null), allocation(100, null), allocation(800, null)];
  const result = summarize(
    [embedding, rest, moments],
    [
      ['forward', 'allocate', allocation(50, 0, { phase: 'forward', op: 'add' })],
      // As where they are brought to the host until they are needed.
      ['backward', 'free', moments],
      ['backward', 'free', embedding],
      ['optimizer', 'allocate', allocation(7, 3, { phase: 'optimizer', op: 'mul' })],
    ],
    100,
  );
  expect(result).toMatchObject({ weightBytes: 400, otherHeldBytes: 800, arenaBytes: 0 });
  const whole = [
    ['optimizer state, tables and batch', 800],
    ['weights', 400],
    ['forward · add', 50],
  ];
  expect(sizes(result)).toEqual([
    ['forward', 1250, whole],
    ['backward', 1250, whole],
    [
      'optimizer',
      157,
      [
        ['weights', 100],
        ['forward · add', 50],
        ['optimizer · mul', 7],
      ],
    ],
  ]);
});

it('takes all that was held as weights where their float32 values would be more', () => {
  const arena = allocation(64, null, { op: 'arena of step' });
  expect(summarize([allocation(200, null), arena], [], 100)).toMatchObject({
    ...{ weightBytes: 200, otherHeldBytes: 0, arenaBytes: 64 },
  });
  expect(summarize([allocation(200, null), arena], [], 30)).toMatchObject({
    ...{ weightBytes: 120, otherHeldBytes: 80, arenaBytes: 64 },
  });
});
