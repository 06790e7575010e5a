import { accessSync, constants, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { DeviceError, KernelCompileError } from '../../../errors.ts';
import type { KernelSpec } from '../../../op/cuda-lowering.ts';
import { packageProgram } from '../../../host/package-root.ts';
import {
  checkCount,
  checkFunction,
  checkObject,
  describeValue,
  wrongArgument,
} from '../../../tensor/check-value.ts';
import { architectureOf } from '../architecture.ts';
import { KernelBuilder, kernelFileName } from './compile.ts';
import { cacheFolder } from './kernel-cache.ts';

/** What the machine code of a kernel follows from. */
export type CompilableKernel = Pick<KernelSpec, 'source' | 'defines'>;

/** Options of `compileKernels`. */
export interface CompileKernelsOptions {
  /** Threads that compile, at most one for each kernel. Default: as many as the processor runs at once. */
  readonly threads?: number;
  /** Called once before the first kernel is compiled, and behind each; never if the cache has them all. */
  readonly onProgress?: (compiled: number, total: number) => void;
}

/** What a worker is told to compile. */
export interface CompileJob {
  readonly source: string;
  readonly defines: NonNullable<KernelSpec['defines']>;
}

/** What it answers: that the cache has the kernel now, or what a KernelCompileError has. */
export interface CompileOutcome {
  readonly failure: { readonly log: string; readonly source: string } | null;
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
  const architecture = architectureOf(computeCapability);
  const missing = missingKernels(kernels, new KernelBuilder(architecture));
  if (missing.length === 0) return 0;
  makeWritable(cacheFolder());
  onProgress?.(0, missing.length);
  let [next, compiled] = [0, 0];
  const failures: { index: number; error: KernelCompileError }[] = [];
  await onWorkers(Math.min(threads, missing.length), architecture, async (compile) => {
    while (next < missing.length && failures.length === 0) {
      const index = next++;
      const { source, defines = {} } = missing[index]!;
      const { failure } = await compile({ source: source.href, defines });
      if (failure) {
        const error = new KernelCompileError(kernelFileName(source), failure.log, failure.source);
        failures.push({ index, error });
      } else onProgress?.(++compiled, missing.length);
    }
  });
  // Kernels are begun in their order, and those that were begun are ended: no earlier one can fail unseen.
  const [first] = failures.sort((a, b) => a.index - b.index);
  if (first) throw first.error;
  return missing.length;
}

function checkArguments(
  kernels: readonly CompilableKernel[],
  computeCapability: number,
  { threads, onProgress }: CompileKernelsOptions,
): void {
  const owner = 'compileKernels';
  if (!Array.isArray(kernels)) throw wrongArgument(owner, 'the kernels', 'a list of specs', kernels);
  for (const kernel of kernels as readonly CompilableKernel[]) {
    checkObject(owner, 'a kernel', kernel);
    if (!(kernel.source instanceof URL)) throw wrongArgument(owner, 'a source', 'a URL', kernel.source);
    if (kernel.defines !== undefined) checkObject(owner, 'definitions', kernel.defines);
  }
  checkCount(owner, 'the compute capability', computeCapability, 1);
  checkCount(owner, 'the number of threads', threads!, 1);
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
}

/** Those that the cache has not, each once. */
function missingKernels(kernels: readonly CompilableKernel[], builder: KernelBuilder): CompilableKernel[] {
  // A sweep names the same few kernels for each of its cells, and a key is made of all text that they include.
  const bySpec = new Map(
    kernels.map((kernel) => [JSON.stringify([kernel.source.href, kernel.defines]), kernel]),
  );
  const byKey = new Map(
    [...bySpec.values()].map((kernel) => [builder.keyOfFile(kernel.source, kernel.defines), kernel]),
  );
  return [...byKey].filter(([key]) => !builder.isCached(key)).map(([, kernel]) => kernel);
}

/** Launches do without a cache; whoever compiles for later launches cannot. */
function makeWritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    throw new DeviceError(
      `compileKernels: kernels cannot be kept in ${describeValue(folder)}; name a folder that can be written to in ` +
        'ROOFLINE_CACHE_DIR.',
      { cause },
    );
  }
}

type Compile = (job: CompileJob) => Promise<CompileOutcome>;

/** Runs `work` once for each of `count` workers, all at once, and ends the workers whatever comes of it. */
async function onWorkers(
  count: number,
  architecture: string,
  work: (compile: Compile) => Promise<void>,
): Promise<void> {
  const workers = Array.from({ length: count }, () => {
    return new Worker(packageProgram('devices/cuda/compile/compile-worker'), {
      workerData: architecture,
      execArgv: workerFlags,
    });
  });
  try {
    await Promise.all(workers.map((worker) => work((job) => answerOf(worker, job))));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

// Node that runs TypeScript says so once in each thread.
const workerFlags = ['--disable-warning=ExperimentalWarning'];

function answerOf(worker: Worker, job: CompileJob): Promise<CompileOutcome> {
  return new Promise((resolve, reject) => {
    const onMessage = (outcome: CompileOutcome) => {
      stopListening();
      resolve(outcome);
    };
    const onEnd = (cause: unknown) => {
      stopListening();
      const what = cause instanceof Error ? cause.message : `exit code ${String(cause)}`;
      const message = `compileKernels: the thread that compiled ${job.source} ended: ${what}`;
      reject(new DeviceError(message, { cause }));
    };
    const stopListening = () => worker.off('message', onMessage).off('error', onEnd).off('exit', onEnd);
    worker.on('message', onMessage).on('error', onEnd).on('exit', onEnd);
    worker.postMessage(job, []);
  });
}
