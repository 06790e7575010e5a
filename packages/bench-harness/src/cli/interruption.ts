import { outputClosed } from './output.ts';

/**
 * A signal that aborts on the first Ctrl-C, SIGTERM or hang-up, and when the output is no longer read, so that what
 * was measured is kept; the second one ends the process at once. Disposing gives the signals back.
 */
export function watchInterruption(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const abort = () => controller.abort();
  for (const name of signals) process.once(name, abort);
  return {
    signal: AbortSignal.any([controller.signal, outputClosed]),
    [Symbol.dispose]() {
      for (const name of signals) process.off(name, abort);
    },
  };
}
