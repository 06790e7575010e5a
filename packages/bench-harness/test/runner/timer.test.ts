import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { afterMs } from '../../src/runner/timer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const dayMs = 24 * 60 * 60 * 1000;

it.each([[5], [2 ** 31 - 1], [2 ** 31], [100 * dayMs]])(
  'waits for %d ms, no less and no more',
  (durationMs) => {
    const work = vi.fn();
    afterMs(durationMs, work);
    vi.advanceTimersByTime(durationMs - 1);
    expect(work).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(work).toHaveBeenCalledOnce();
  },
);

it('can be called off, also after more than one timer of Node lasts', () => {
  const work = vi.fn();
  const callOff = afterMs(100 * dayMs, work);
  vi.advanceTimersByTime(50 * dayMs);
  callOff();
  vi.advanceTimersByTime(100 * dayMs);
  expect(work).not.toHaveBeenCalled();
});
