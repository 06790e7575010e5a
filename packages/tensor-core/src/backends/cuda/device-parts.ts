import type { CudaContext } from '../../op/cuda-lowering.ts';
import { availableParallelism } from 'node:os';
import { CompileBatch } from '../../cuda/nvrtc/compile-batch.ts';
import { KernelBuilder } from '../../cuda/nvrtc/compile.ts';
import type { BeginBatch } from '../../cuda/nvrtc/kernel-batch.ts';
import { KernelCache, cacheFolder } from '../../cuda/nvrtc/kernel-cache.ts';
import type { CudaDriver } from '../../cuda/driver/driver.ts';
import type { Streams } from '../../cuda/driver/stream.ts';
import { CublasLt } from '../../cuda/cublaslt.ts';
import type { Float32Product } from './matmul/matmul.ts';
import { SplitHalfProduct } from './matmul/matmul-split-half.ts';
import type { Scratch } from '../../cuda/memory/stream-scratch.ts';

/** What a device gets from outside, so that tests can replace it. */
export interface DeviceParts {
  makeBuilder(architecture: string): KernelBuilder;
  /** Another way than cublasLt to multiply float32 matrices, if this GPU has one. */
  makeFloat32Product(
    context: CudaContext,
    driver: CudaDriver,
    scratch: Scratch,
    streams: Streams,
  ): Float32Product | null;
  /** Called before the first product that needs it. Throws a LibraryNotFoundError if it is missing. */
  loadCublasLt(): CublasLt;
  /** Whether freed memory is filled with 0xff, which is NaN in every floating-point dtype; ROOFLINE_POISON_MEMORY=1. */
  readonly poisonsFreedMemory: boolean;
}

/** The parts of a real GPU. */
export const nvidiaParts = (): DeviceParts => ({
  makeBuilder: commonBuilder,
  makeFloat32Product: (context, driver, scratch) =>
    context.properties.computeCapability === 90 ? new SplitHalfProduct(context, driver, scratch) : null,
  loadCublasLt: () => new CublasLt(),
  poisonsFreedMemory: process.env.ROOFLINE_POISON_MEMORY === '1',
});

const builders = new Map<string, KernelBuilder>();

/** One builder for all GPUs of an architecture: a kernel whose compilation one has started, another waits for. */
function commonBuilder(architecture: string): KernelBuilder {
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

// Each thread has its own V8 and compiler, some ten megabytes.
const mostThreads = 8;

/** Null if there is only one processor, which this thread uses. */
function onOtherProcessors(): BeginBatch | null {
  const threads = Math.min(availableParallelism() - 1, mostThreads);
  return threads > 0 ? (requests, keep) => new CompileBatch(requests, threads, keep) : null;
}
