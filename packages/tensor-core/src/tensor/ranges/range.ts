import { checkFunction, checkObject, checkText, refuseAsync, refusePromise } from '@roofline/cuda/host';

/** Is called as ranges open and close, such as an NVTX emitter. */
export interface RangeListener {
  enter(name: string): void;
  exit(name: string): void;
}

/** One opening of a range. */
export class OpenRange {
  readonly name: string;
  /** The range that it was opened in. */
  readonly outer: OpenRange | null;
  /** The opening that this one repeats; null for a range that is opened for the first time. */
  readonly origin: OpenRange | null;
  #path: readonly string[] | null = null;

  constructor(outer: OpenRange | null, name: string, origin: OpenRange | null = null) {
    this.outer = outer;
    this.name = name;
    this.origin = origin;
  }

  /** The names of this range and those around it, outermost first: always the same list object. */
  get path(): readonly string[] {
    return (this.#path ??= this.outer ? [...this.outer.path, this.name] : [this.name]);
  }
}

const noNames: readonly string[] = [];

let open: OpenRange | null = null;
const listeners = new Set<RangeListener>();

/** The names of the open ranges, outermost first. */
export function currentRange(): readonly string[] {
  return open?.path ?? noNames;
}

/** The innermost open range: a new object for each opening. */
export function currentOpenRange(): OpenRange | null {
  return open;
}

/**
 * Names what `fn` runs. Ranges nest; the backward pass opens the range of each op it differentiates again. Throws a
 * RooflineError for an async function.
 */
export function range<T>(name: string, fn: () => T): T {
  checkText('range', 'the name', name);
  refuseAsync('range', fn);
  return refusePromise('range', inRange(new OpenRange(open, name), fn));
}

/** Runs `fn` in a range and those between it and the open one, which is the open range again afterwards. */
export function inRange<T>(innermost: OpenRange | null, fn: () => T): T {
  const outer = open;
  open = innermost;
  if (listeners.size === 0) return inOpened(outer, fn);
  const names = innermost === outer ? noNames : innermost!.path.slice(outer?.path.length ?? 0);
  return listenersTold(names, outer, fn);
}

/** Runs `fn` in the range just opened; then `outer` is the open range again. */
function inOpened<T>(outer: OpenRange | null, fn: () => T): T {
  try {
    return fn();
  } finally {
    open = outer;
  }
}

/**
 * Runs `fn`, telling all listeners before that the ranges open and afterwards that they close; then `outer` is the open range
 * again. Listeners that were told of an opening are told of its closing, whatever any of them or `fn` throws, unless they have
 * been removed.
 */
function listenersTold<T>(names: readonly string[], outer: OpenRange | null, fn: () => T): T {
  const entered: (readonly [listener: RangeListener, name: string])[] = [];
  try {
    for (const name of names) {
      for (const listener of [...listeners]) {
        listener.enter(name);
        entered.push([listener, name]);
      }
    }
    return fn();
  } finally {
    open = outer;
    exitAll(entered);
  }
}

/** Closes the innermost first; throws a listener's error once all have been told. */
function exitAll(entered: readonly (readonly [listener: RangeListener, name: string])[]): void {
  const errors: unknown[] = [];
  for (const [listener, name] of entered.toReversed()) {
    try {
      if (listeners.has(listener)) listener.exit(name);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Adds a listener; returns a function that removes it. */
export function onRange(listener: RangeListener): () => void {
  checkObject('onRange', 'the listener', listener);
  checkFunction('onRange', "the listener's enter", listener.enter);
  checkFunction('onRange', "the listener's exit", listener.exit);
  listeners.add(listener);
  return () => listeners.delete(listener);
}
