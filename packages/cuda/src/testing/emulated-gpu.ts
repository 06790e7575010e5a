import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkOptions } from '../base/check-options.ts';
import { checkCount, checkFunction } from '../base/check-value.ts';
import { DeviceError } from '../base/errors.ts';
import { CudaDriver } from '../driver/driver.ts';
import { type GpuParts, makeGpuParts } from '../gpu-parts.ts';
import { Gpu } from '../gpu.ts';
import { KernelBuilder } from '../nvrtc/compile.ts';
import { KernelCache } from '../nvrtc/kernel-cache.ts';
import type { CompileRequest, KernelCompiler } from '../nvrtc/nvrtc.ts';
import { EmulatedCompiler } from './emulated-compiler.ts';
import { EmulatedDriver } from './emulated-driver.ts';

let compiler: EmulatedCompiler | null = null;

/** One for all devices: it asks the host's compiler for its version. */
function hostCompiler(): EmulatedCompiler {
  compiler ??= new EmulatedCompiler();
  return compiler;
}

/** A kernel was needed on an emulated GPU that has as many as it was opened for. */
export class KernelLimitError extends DeviceError {}

/** Compiles each kernel once a machine, and a GPU at most so many. */
class LimitedCompiler implements KernelCompiler {
  readonly #builder: KernelBuilder;
  #left: number;

  constructor(architecture: string, most: number) {
    const cache = new KernelCache(join(tmpdir(), 'roofline-emulated-kernels'));
    this.#builder = new KernelBuilder(architecture, { loadCompiler: hostCompiler, cache });
    this.#left = most;
  }

  get version(): string {
    return hostCompiler().version;
  }

  compile(request: CompileRequest): Uint8Array {
    if (this.#left-- <= 0)
      throw new KernelLimitError(`${request.name}: the emulated GPU has all its kernels.`);
    return this.#builder.build(request);
  }
}

/** Finds no kernel compiled, and so has those of programs postponed, as a GPU does whose cache is empty. */
function builderFor(architecture: string, mostKernels: number): KernelBuilder {
  const compiler = new LimitedCompiler(architecture, mostKernels);
  return new KernelBuilder(architecture, {
    loadCompiler: () => compiler,
    cache: { read: () => undefined, write: () => false },
    beginBatch: () => ({ take: () => null }),
  });
}

/** A GPU that the CPU plays. */
export class EmulatedGpu extends Gpu {
  /** Queues a function of JavaScript on a stream, by its handle, in the place of a kernel. */
  readonly queue: (stream: number, run: () => void) => void;

  constructor(parts: GpuParts, queue: (stream: number, run: () => void) => void) {
    super(parts);
    this.queue = queue;
  }
}

/** Options of `openEmulatedGpu`. */
export interface EmulatedGpuOptions {
  /** What it has; 1 GiB unless given. */
  readonly memoryBytes?: number;
  /**
   * Called inside every launch, with what it puts on the GPU: one kernel, a graph's nodes, or nothing yet while a stream is
   * captured.
   */
  readonly onLaunch?: (activities: number) => void;
  /** What orders are drawn from; 1 unless given. */
  readonly seed?: number;
  /** One that is needed beyond these throws a KernelLimitError; Infinity unless given. */
  readonly mostKernels?: number;
}

/**
 * A GPU whose memory is the host's and whose kernels run on the CPU, by a stand-in for libcuda. Work is queued, and runs in
 * an order drawn from `seed` among those that streams, events, warps and blocks allow; new and freed memory holds NaN. A
 * kernel that reads a misaligned address fails as on a GPU. Each kernel takes the host's compiler, g++, a second, once a
 * machine. Throws a RooflineError for options that are none.
 */
export function openEmulatedGpu(options: EmulatedGpuOptions = {}): EmulatedGpu {
  const owner = 'openEmulatedGpu';
  checkOptions(owner, options, ['memoryBytes', 'onLaunch', 'seed', 'mostKernels']);
  const { memoryBytes = 2 ** 30, onLaunch = () => {}, seed = 1, mostKernels = Infinity } = options;
  checkCount(owner, 'memoryBytes', memoryBytes);
  checkFunction(owner, 'onLaunch', onLaunch);
  checkCount(owner, 'seed', seed);
  if (mostKernels !== Infinity) checkCount(owner, 'mostKernels', mostKernels);
  const emulated = new EmulatedDriver(memoryBytes, onLaunch, seed);
  const driver = new CudaDriver(emulated.functions, (result) => emulated.describe(result));
  const parts = makeGpuParts(driver, 0, {
    makeBuilder: (architecture) => builderFor(architecture, mostKernels),
    poisonsFreedMemory: true,
  });
  return new EmulatedGpu(parts, (stream, run) => emulated.queues.push(stream, run));
}
