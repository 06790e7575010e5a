import { refuseAsync, refusePromise } from '@roofline/cuda/host';

let enabled = true;

/** Whether ops are recorded on the tape. */
export function isGradEnabled(): boolean {
  return enabled;
}

/**
 * Runs `fn` without recording: its results have no history, and nothing is saved for a backward pass. Throws a
 * RooflineError for an async function.
 */
export function noGrad<T>(fn: () => T): T {
  refuseAsync('noGrad', fn);
  return refusePromise('noGrad', inMode(false, fn));
}

/** Runs `fn` with recording, also inside `noGrad`. Throws a RooflineError for an async function. */
export function enableGrad<T>(fn: () => T): T {
  refuseAsync('enableGrad', fn);
  return refusePromise('enableGrad', inMode(true, fn));
}

function inMode<T>(mode: boolean, fn: () => T): T {
  const before = enabled;
  enabled = mode;
  try {
    return fn();
  } finally {
    enabled = before;
  }
}
