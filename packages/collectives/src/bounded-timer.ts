/** Node takes a longer time for one of a millisecond. */
const longestMs = 2 ** 31 - 1;

/** `setTimeout` for a time of any length: one beyond 24 days ends then. */
export function startTimer(run: () => void, timeoutMs: number): NodeJS.Timeout {
  return setTimeout(run, Math.min(timeoutMs, longestMs));
}
