let enabled = true;

/** Whether ops are recorded on the tape. */
export function isGradEnabled(): boolean {
  return enabled;
}

/** Runs `fn` without recording: its results have no history, and nothing is saved for a backward pass. */
export function noGrad<T>(fn: () => T): T {
  const before = enabled;
  enabled = false;
  try {
    return fn();
  } finally {
    enabled = before;
  }
}
