/**
 * A signal that aborts on the first Ctrl-C or SIGTERM, so that what was measured is kept; the second one ends the
 * process at once. Disposing gives the signals back.
 */
export function watchInterruption(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const abort = () => controller.abort();
  for (const name of signals) process.once(name, abort);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      for (const name of signals) process.off(name, abort);
    },
  };
}
