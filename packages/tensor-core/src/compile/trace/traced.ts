import { withOwnCasts } from '../../op/autocast/autocast.ts';
import { observeOps } from '../../op/observers.ts';
import { currentScope, scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { tracing } from '../../tensor/tracing.ts';
import type { Trace } from './trace.ts';

/**
 * What `fn` returns, run in a scope of its own while `trace` records it. Throws what `fn` throws, and what `trace` has
 * refused, even if `fn` caught that.
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

/** In the scope that called `traced`: whether a handle is one that the function made and returned, not one that it found. */
export function isHandedOver({ scope: owner }: Tensor): boolean {
  return owner === currentScope();
}
