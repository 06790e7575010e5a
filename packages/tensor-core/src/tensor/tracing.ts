import { checkFunction } from '@roofline/cuda/host';

/** A `Tensor`: tensors tell of themselves here, so this lies below them. */
type Handle = object;

/** What a trace is told of that is no op; see compile/trace/trace.ts. */
export interface Tracing {
  /** The gradient of a leaf is looked at. */
  gradientRead(leaf: Handle, grad: Handle | null): void;
  /** It is about to be replaced. */
  gradientSet(leaf: Handle, before: Handle | null): void;
  /** It is asked whether a leaf requires a gradient, on which depends what is recorded. */
  requirementRead(leaf: Handle): void;
  /** It is about to change whether it does. */
  requirementSet(leaf: Handle, before: boolean): void;
  /** A write in place has left its history in a tensor. */
  historyWritten(target: Handle): void;
  /** Something beside tensors was looked at that the ops to come depend on. */
  depends(read: () => unknown, value: unknown): void;
  /** Something runs that no replay can repeat. Throws a CompileError. */
  refuse(what: string, remedy: string): never;
}

/** The trace that is being written; null outside of one. */
export const tracing: { active: Tracing | null } = { active: null };

/**
 * The compiled function that is being written down, each time another object; null outside of one. Its `refuse(what, remedy)`
 * throws a CompileError: for what changes state on the host, which a replay would not.
 */
export function currentTrace(): Pick<Tracing, 'refuse'> | null {
  return tracing.active;
}

/**
 * What `read` gives. Code that decides by it which ops run, whether a module trains say, reads it through this, so that a
 * compiled program is used only while `read` gives the same (by Object.is). Throws what `read` throws, and a RooflineError
 * (code ARGUMENT) for what is no function.
 */
export function dependOn<T>(read: () => T): T {
  checkFunction('dependOn', 'what it reads by', read);
  const value = read();
  tracing.active?.depends(read, value);
  return value;
}
