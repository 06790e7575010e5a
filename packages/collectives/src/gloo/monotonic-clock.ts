const tries = 10;
let offsetMs: number | null = null;

/** A time of the system's monotonic clock, in nanoseconds, by `performance.now()`, which counts from a later start. */
export function performanceTime(monotonicNs: bigint): number {
  offsetMs ??= measureOffsetMs();
  return Number(monotonicNs) / 1e6 - offsetMs;
}

/** Both clocks read one after the other, as often as the system may step in between: the closest readings count. */
function measureOffsetMs(): number {
  let closest = { betweenMs: Infinity, offsetMs: 0 };
  for (let i = 0; i < tries; i++) {
    const beforeMs = performance.now();
    const clockMs = Number(process.hrtime.bigint()) / 1e6;
    const betweenMs = performance.now() - beforeMs;
    if (betweenMs < closest.betweenMs) closest = { betweenMs, offsetMs: clockMs - beforeMs - betweenMs / 2 };
  }
  return closest.offsetMs;
}
