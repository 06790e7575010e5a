import { setFlagsFromString } from 'node:v8';
import { createContext, runInNewContext, Script, type Context } from 'node:vm';

interface Collector {
  readonly gc: () => void;
  readonly context: Context;
  readonly nothing: Script;
}

let collector: Collector | null = null;

/**
 * Collects garbage now, so that `deref` of a WeakRef gives undefined of what nothing else refers to. What is referred to
 * weakly is kept until the microtasks of its turn have run: a script in a context with microtasks of its own ends in them.
 */
export function forceCollection(): void {
  const { gc, context, nothing } = (collector ??= makeCollector());
  nothing.runInContext(context);
  gc();
}

function makeCollector(): Collector {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  const context = createContext({}, { microtaskMode: 'afterEvaluate' });
  return { gc, context, nothing: new Script('0') };
}
