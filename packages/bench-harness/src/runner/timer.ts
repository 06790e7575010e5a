/** The longest that a Node timer waits; longer times are taken as 1 ms. */
const LONGEST_MS = 2 ** 31 - 1;

/** Runs `work` after any number of milliseconds; returns the way to call that off. */
export function afterMs(durationMs: number, work: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (restMs: number) => {
    const next = restMs > LONGEST_MS ? () => wait(restMs - LONGEST_MS) : work;
    timer = setTimeout(next, Math.min(restMs, LONGEST_MS));
  };
  wait(durationMs);
  return () => clearTimeout(timer);
}
