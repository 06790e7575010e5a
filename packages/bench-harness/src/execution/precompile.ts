import { type CompiledFunction, compile, type Device, type Tensor } from '@roofline/tensor-core';
import type { Compilation } from './compilation.ts';
import type { CompiledExecution } from './kinds.ts';

/** A function as a program. */
export interface Precompiled<R extends Tensor | undefined = Tensor | undefined> {
  /** Runs it, and frees what it returns. */
  readonly call: () => void;
  readonly compiled: CompiledFunction<() => R>;
  readonly compilation: Compilation;
}

/** Compiles `fn`, within a budget of memory if one is given, and calls it until a call has run as a program. */
export function precompile<R extends Tensor | undefined>(
  device: Device,
  fn: () => R,
  execution: CompiledExecution,
  memoryBudget?: string,
): Precompiled<R> {
  const compiled = compile(fn, {
    autotune: execution === 'autotuned',
    ...(memoryBudget !== undefined && { memoryBudget }),
  });
  const call = () => compiled()?.dispose();
  device.synchronize();
  const start = performance.now();
  let calls = 0;
  do {
    call();
    calls++;
  } while (compiled.cache.hits === 0);
  device.synchronize();
  return { call, compiled, compilation: { calls, durationMs: performance.now() - start } };
}
