import { checkText } from '@roofline/cuda/host';
import { type Allocation, type MemoryEvent, type MemoryRecord, checkRecord } from './record.ts';

/** The most bytes that were allocated at once, when that was first reached, and what was held then. */
export interface MemoryPeak {
  readonly bytes: number;
  readonly timeUs: number;
  /** Largest first. */
  readonly live: readonly Allocation[];
}

/**
 * The peak of a whole recording or, given a phase, of the time when it was open. Null if the phase neither allocated nor freed
 * memory.
 */
export function peakMemory(
  record: Pick<MemoryRecord, 'allocations' | 'events'>,
  phase?: string,
): MemoryPeak | null {
  checkRecord('peakMemory', record);
  if (phase !== undefined) checkText('peakMemory', 'the phase', phase);
  const { allocations, events } = record;
  const held = allocations.filter(({ startUs }) => startUs === null);
  let bytes = held.reduce((sum, allocation) => sum + allocation.bytes, 0);
  let peak = phase === undefined ? { bytes, after: -1 } : null;
  events.forEach((event, index) => {
    const inside = phase === undefined || event.phase === phase;
    // What was held when the phase began counts as well.
    if (inside && (peak === null || bytes > peak.bytes)) peak = { bytes, after: index - 1 };
    bytes += signedBytes(event);
    if (inside && bytes > peak!.bytes) peak = { bytes, after: index };
  });
  if (peak === null) return null;
  const { bytes: most, after } = peak as { bytes: number; after: number };
  return { bytes: most, timeUs: events[after]?.timeUs ?? 0, live: liveAfter(held, events, after) };
}

function signedBytes(event: MemoryEvent): number {
  if (event.action === 'allocate') return event.allocation.bytes;
  return event.action === 'free' ? -event.allocation.bytes : 0;
}

function liveAfter(held: readonly Allocation[], events: readonly MemoryEvent[], last: number): Allocation[] {
  const live = new Set(held);
  for (const event of events.slice(0, last + 1)) {
    if (event.action === 'allocate') live.add(event.allocation);
    else if (event.action === 'free') live.delete(event.allocation);
  }
  return [...live].sort((a, b) => b.bytes - a.bytes);
}

/** Bytes that the allocator had reserved from the system, from each point to the next. */
export function reservedOverTime(
  record: Pick<MemoryRecord, 'reservedBytesBefore' | 'events'>,
): [timeUs: number, bytes: number][] {
  checkRecord('reservedOverTime', record);
  const { reservedBytesBefore, events } = record;
  let reserved = reservedBytesBefore;
  const points: [number, number][] = [[0, reserved]];
  for (const event of events) {
    if (event.action !== 'reserve' && event.action !== 'release') continue;
    reserved += event.action === 'reserve' ? event.bytes : -event.bytes;
    points.push([event.timeUs, reserved]);
  }
  return points;
}
