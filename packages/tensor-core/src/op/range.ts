import { checkFunction, checkObject, checkText } from '../tensor/check-value.ts';
import { refuseAsync, refusePromise } from '../tensor/lifetime/synchronous.ts';

/** Tells of ranges as they open and close, such as an NVTX emitter. */
export interface RangeListener {
  enter(name: string): void;
  exit(name: string): void;
}

/** One opening of a range. */
export interface OpenRange {
  readonly name: string;
  /** The one that it was opened in. */
  readonly outer: OpenRange | null;
  /** The names of this range and those around it, outermost first. */
  readonly path: readonly string[];
}

/** Which opening a path is of: openings of equal names are told apart by it. */
const openings = new WeakMap<readonly string[], OpenRange>();

class Opening implements OpenRange {
  readonly name: string;
  readonly outer: OpenRange | null;
  #path: readonly string[] | null = null;

  constructor(outer: OpenRange | null, name: string) {
    this.name = name;
    this.outer = outer;
  }

  /** Made when somebody asks, and the same from then on: without a tape or an observer nobody does. */
  get path(): readonly string[] {
    if (this.#path === null) {
      this.#path = this.outer ? [...this.outer.path, this.name] : [this.name];
      openings.set(this.#path, this);
    }
    return this.#path;
  }
}

const noNames: readonly string[] = [];

let open: OpenRange | null = null;
const listeners = new Set<RangeListener>();

/** The names of the ranges that are open, outermost first. */
export function currentRange(): readonly string[] {
  return open?.path ?? noNames;
}

/** The innermost range that is open: another object for each opening. */
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
  const outer = open;
  open = new Opening(outer, name);
  return refusePromise('range', listeners.size > 0 ? listenersTold([name], outer, fn) : inOpened(outer, fn));
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
 * Runs `fn` between telling all listeners that the ranges open and that they close; then `outer` is the open range
 * again. Listeners that were told of an opening are told of its closing, whatever any of them or `fn` throws, unless
 * they have been removed.
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

/** The innermost first; throws what a listener threw once all have been told. */
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

/**
 * Opens the ranges of an earlier call again, below those that are open now; the forward phase's own is left out.
 * Calls that follow each other share their outer ranges, as those of the forward pass did.
 */
export function resumeRange<T>(names: readonly string[], fn: () => T): T {
  return inReopened(names, names[0] === 'forward' ? 1 : 0, fn);
}

/** Opens the ranges of a call that is repeated again, all of them, below those that are open now. */
export function reopenRange<T>(names: readonly string[], fn: () => T): T {
  return inReopened(names, 0, fn);
}

function inReopened<T>(names: readonly string[], skipped: number, fn: () => T): T {
  const outer = open;
  open = reopened(outer, names, skipped);
  return listeners.size > 0 ? listenersTold(names.slice(skipped), outer, fn) : inOpened(outer, fn);
}

/** The ranges that were opened again last. */
interface Resumed {
  readonly outer: OpenRange | null;
  readonly names: readonly string[];
  readonly skipped: number;
  readonly innermost: OpenRange | null;
  /** What each of them, outermost first, was when it was opened first; undefined where only its name is known. */
  readonly origins: readonly (OpenRange | undefined)[];
}

let resumed: Resumed | null = null;

/** Ranges that are opened again from now on are others than before: another backward pass or replay begins. */
export function forgetReopened(): void {
  resumed = null;
}

/**
 * The innermost of the ranges of these names but the first `skipped`, as opened once more below `outer`. Those that the
 * call before was in too stay the same; where both calls' paths are known, ranges of equal names opened apart do not.
 */
export function reopened(outer: OpenRange | null, names: readonly string[], skipped = 0): OpenRange | null {
  if (resumed?.outer === outer && resumed.names === names && resumed.skipped === skipped)
    return resumed.innermost;
  const earlier = resumed?.outer === outer ? chainBelow(outer, resumed.innermost) : [];
  const before = earlier.length > 0 ? resumed!.origins : [];
  const known = chainBelow(null, openings.get(names) ?? null).slice(skipped);
  let innermost = outer;
  let shared = true;
  const origins = names.slice(skipped).map((name, depth) => {
    const [was, is] = [before[depth], known[depth]];
    shared &&= earlier[depth]?.name === name && (was === undefined || is === undefined || was === is);
    innermost = shared ? earlier[depth]! : new Opening(innermost, name);
    return is ?? (shared ? was : undefined);
  });
  resumed = { outer, names, skipped, innermost, origins };
  return innermost;
}

/** The ranges between `outer` and `innermost`, outermost first. */
function chainBelow(outer: OpenRange | null, innermost: OpenRange | null): OpenRange[] {
  const chain: OpenRange[] = [];
  for (let range = innermost; range && range !== outer; range = range.outer) chain.unshift(range);
  return chain;
}
