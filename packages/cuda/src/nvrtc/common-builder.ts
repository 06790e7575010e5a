import { availableParallelism } from 'node:os';
import { CompileBatch } from './compile-batch.ts';
import { KernelBuilder } from './compile.ts';
import type { BeginBatch } from './kernel-batch.ts';
import { KernelCache, cacheFolder } from './kernel-cache.ts';

const builders = new Map<string, KernelBuilder>();

/** One for all GPUs of an architecture: what one of them has had begun, another waits for. */
export function commonBuilder(architecture: string): KernelBuilder {
  const folder = cacheFolder();
  const key = `${architecture} ${folder}`;
  let builder = builders.get(key);
  if (!builder) {
    const cache = new KernelCache(folder);
    builders.set(
      key,
      (builder = new KernelBuilder(architecture, { cache, beginBatch: onOtherProcessors() })),
    );
  }
  return builder;
}

// Each thread has a V8 and a compiler of its own, some ten megabytes.
const mostThreads = 8;

/** Null where this thread has the only processor. */
function onOtherProcessors(): BeginBatch | null {
  const threads = Math.min(availableParallelism() - 1, mostThreads);
  return threads > 0 ? compileAside(threads) : null;
}

/** Compiles in so many threads of their own, or in fewer where fewer kernels are asked for. */
export function compileAside(threads: number): BeginBatch {
  return (requests, keep) => new CompileBatch(requests, threads, keep);
}
