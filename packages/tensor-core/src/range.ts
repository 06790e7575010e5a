/** Tells of ranges as they open and close: a profiler, an NVTX emitter. */
export interface RangeListener {
  enter(name: string): void;
  exit(name: string): void;
}

let path: readonly string[] = [];
const listeners = new Set<RangeListener>();

/** The names of the ranges that are open, outermost first. */
export function currentRange(): readonly string[] {
  return path;
}

/** Names what `fn` runs. Ranges nest; the backward pass opens the range of each op it differentiates again. */
export function range<T>(name: string, fn: () => T): T {
  const outer = path;
  path = [...outer, name];
  for (const listener of listeners) listener.enter(name);
  try {
    return fn();
  } finally {
    for (const listener of listeners) listener.exit(name);
    path = outer;
  }
}

/** Adds a listener; returns a function that removes it. */
export function onRange(listener: RangeListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Opens the ranges of an earlier call again, below those that are open now; the forward phase's own is left out. */
export function resumeRange<T>(names: readonly string[], fn: () => T): T {
  if (listeners.size === 0 || names.length === 0) return fn();
  const [first, ...rest] = names;
  if (first === 'forward') return resumeRange(rest, fn);
  return range(first!, () => resumeRange(rest, fn));
}
