import { withOwnCasts } from '../../op/autocast/autocast.ts';
import { observeOps } from '../../op/observers.ts';
import { currentScope, scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { tracing } from '../../tensor/tracing.ts';
import type { Trace } from './trace.ts';

/**
 * What `fn` gives, run in a scope of its own while `trace` writes down what it does. Throws what `fn` throws, and what `trace`
 * has refused even where `fn` caught that.
 */
export function traced<T>(trace: Trace, fn: () => T): T {
  const stop = observeOps(trace);
  tracing.active = trace;
  try {
    return scope(() => {
      const result = withOwnCasts(fn);
      if (trace.refusal) throw trace.refusal;
      return result;
    });
  } finally {
    tracing.active = null;
    stop();
  }
}

/** Whether a handle is a result of `traced`, asked where that was called: one that the function made, not one that it found. */
export function isHandedOver({ scope: owner }: Tensor): boolean {
  return owner !== null && owner === currentScope();
}
