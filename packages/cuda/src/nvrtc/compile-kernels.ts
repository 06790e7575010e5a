import { accessSync, constants, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { DeviceError } from '../base/errors.ts';
import type { KernelSpec } from '../kernel.ts';
import { checkCount, checkFunction, checkObject, describeValue, wrongArgument } from '../base/check-value.ts';
import { architectureOf } from '../architecture.ts';
import { CompileBatch } from './compile-batch.ts';
import { KernelBuilder } from './compile.ts';
import { cacheFolder } from './kernel-cache.ts';
import type { CompileRequest } from './nvrtc.ts';

/** What the machine code of a kernel follows from. */
export type CompilableKernel = Pick<KernelSpec, 'source' | 'defines'>;

/** Options of `compileKernels`. */
export interface CompileKernelsOptions {
  /** Threads that compile, at most one for each kernel. Default: as many as the processor runs at once. */
  readonly threads?: number;
  /** Called once before the first kernel is compiled, and after each; never if the cache has them all. */
  readonly onProgress?: (compiled: number, total: number) => void;
}

/**
 * Compiles kernels for GPUs of a compute capability (90 for 9.0) into the cache on disk, many at once, so that their first
 * launch, in this process or another, only loads them. It needs NVRTC and no GPU. Gives how many were compiled; those that the
 * cache has, or that compile alike, are not.
 *
 * Throws a KernelCompileError for the first, in their order, that does not compile; a DeviceError for a GPU that is too
 * old, a missing header, or a cache that cannot be written to; a LibraryNotFoundError without NVRTC.
 */
export async function compileKernels(
  kernels: readonly CompilableKernel[],
  computeCapability: number,
  options: CompileKernelsOptions = {},
): Promise<number> {
  const { threads = availableParallelism(), onProgress } = options;
  checkArguments(kernels, computeCapability, { threads, onProgress });
  const builder = new KernelBuilder(architectureOf(computeCapability));
  const missing = missingKernels(kernels, builder);
  if (missing.length === 0) return 0;
  makeWritable(cacheFolder());
  onProgress?.(0, missing.length);
  const compiled = new Set<number>();
  const requests = missing.map(({ request }) => request);
  const keep = (index: number, image: Uint8Array) => {
    if (!builder.keep(missing[index]!.key, image)) throw notKept();
    onProgress?.(compiled.add(index).size, missing.length);
    return true;
  };
  await new CompileBatch(requests, threads, keep).ended();
  // Kernels are begun in their order: the first that did not compile comes before those that were not begun.
  requests.forEach((request, index) => compiled.has(index) || builder.build(request));
  return missing.length;
}

function checkArguments(
  kernels: readonly CompilableKernel[],
  computeCapability: number,
  { threads, onProgress }: CompileKernelsOptions,
): void {
  const owner = 'compileKernels';
  checkKernels(owner, kernels);
  checkCount(owner, 'the compute capability', computeCapability, 1);
  checkCount(owner, 'the number of threads', threads!, 1);
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
}

/** Throws a RooflineError (code ARGUMENT) for what is no list of kernels. */
export function checkKernels(owner: string, kernels: readonly CompilableKernel[]): void {
  if (!Array.isArray(kernels)) throw wrongArgument(owner, 'the kernels', 'a list of specs', kernels);
  for (const kernel of kernels as readonly CompilableKernel[]) {
    checkObject(owner, 'a kernel', kernel);
    if (!(kernel.source instanceof URL)) throw wrongArgument(owner, 'a source', 'a URL', kernel.source);
    if (kernel.defines !== undefined) checkObject(owner, 'definitions', kernel.defines);
  }
}

interface MissingKernel {
  /** What the cache will call it. */
  readonly key: string;
  readonly request: CompileRequest;
}

/** Those that the cache has not, each once. */
function missingKernels(kernels: readonly CompilableKernel[], builder: KernelBuilder): MissingKernel[] {
  // A sweep names the same few kernels for each of its cells, and a key is made of all text that they include.
  const bySpec = new Map(
    kernels.map((kernel) => [JSON.stringify([kernel.source.href, kernel.defines]), kernel]),
  );
  const requests = [...bySpec.values()].map(({ source, defines }) => builder.fileRequest(source, defines));
  const byKey = new Map(requests.map((request) => [builder.keyOf(request), request]));
  return [...byKey].filter(([key]) => !builder.isCached(key)).map(([key, request]) => ({ key, request }));
}

/** Launches do without a cache; compiling for later launches cannot. */
function makeWritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    throw notKept(cause);
  }
}

function notKept(cause?: unknown): DeviceError {
  return new DeviceError(
    `compileKernels: kernels cannot be kept in ${describeValue(cacheFolder())}; name a folder that can be written to, on a ` +
      'disk that is not full, in ROOFLINE_CACHE_DIR.',
    { cause },
  );
}
