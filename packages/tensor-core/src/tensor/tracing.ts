import { checkFunction } from '@roofline/cuda/host';

/** A `Tensor`: tensors report to this module, so it cannot import them. */
type Handle = object;

/** A `Storage`, likewise. */
type Memory = object;

/** What a trace is told other than ops; see compile/trace/trace.ts. */
export interface Tracing {
  /** The gradient of a leaf is read. */
  gradientRead(leaf: Handle, grad: Handle | null): void;
  /** It is about to be replaced. */
  gradientSet(leaf: Handle, before: Handle | null): void;
  /** Whether a leaf requires a gradient is read; what is recorded depends on it. */
  requirementRead(leaf: Handle): void;
  /** Whether a leaf requires a gradient is about to change. */
  requirementSet(leaf: Handle, before: boolean): void;
  /** A write in place has left its history in a tensor. */
  historyWritten(target: Handle): void;
  /** A storage whose memory was away takes over that of `source`. */
  memoryMovedIn(storage: Memory, source: Memory): void;
  /** The memory of a storage is let go: what is there later is another's. */
  memoryLetGo(storage: Memory): void;
  /** Something other than tensors was read that later ops depend on. */
  depends(read: () => unknown, value: unknown): void;
  /** Something happens that no replay can repeat. Throws a CompileError. */
  refuse(what: string, remedy: string): never;
}

/** The trace under way; null outside of one. */
export const tracing: { active: Tracing | null } = { active: null };

/**
 * The compiled function that is being traced, a new object each time; null outside of one. Its `refuse(what, remedy)` throws a
 * CompileError: for what changes state on the host, which a replay would not.
 */
export function currentTrace(): Pick<Tracing, 'refuse'> | null {
  return tracing.active;
}

/**
 * What `read` returns. Code that decides by it which ops run, such as whether a module is training, reads it through this
 * function, so that a compiled function is replayed only while `read` returns the same (by Object.is). Throws what `read`
 * throws, and a RooflineError (code ARGUMENT) unless `read` is a function.
 */
export function dependOn<T>(read: () => T): T {
  checkFunction('dependOn', 'what it reads by', read);
  const value = read();
  tracing.active?.depends(read, value);
  return value;
}
