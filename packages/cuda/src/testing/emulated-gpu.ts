import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KernelBuilder } from '../cuda/nvrtc/compile.ts';
import { CudaDevice } from '../backends/cuda/device.ts';
import type { DeviceParts } from '../backends/cuda/device-parts.ts';
import { CublasLt } from '../cuda/cublaslt.ts';
import { CudaDriver } from '../cuda/driver/driver.ts';
import { KernelCache } from '../cuda/nvrtc/kernel-cache.ts';
import type { CompileRequest, KernelCompiler } from '../cuda/nvrtc/nvrtc.ts';
import { EmulatedCublasLt } from './emulated-cublaslt.ts';
import { EmulatedCompiler } from './emulated-compiler.ts';
import { EmulatedDriver } from './emulated-driver.ts';
import { DeviceError } from '../base/errors.ts';
import { EmulatedMatmul } from './emulated-matmul.ts';

export { hostCompilerVersion } from './emulated-compiler.ts';
export { emulatedMultiprocessors } from './emulated-driver.ts';

let compiler: EmulatedCompiler | null = null;

/** One for all devices: it asks the host's compiler for its version. */
function hostCompiler(): EmulatedCompiler {
  compiler ??= new EmulatedCompiler();
  return compiler;
}

/** A kernel was needed on an emulated device that has as many as it was opened for. */
export class KernelLimitError extends DeviceError {}

/** Compiles each kernel once a machine, and a device at most so many. */
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
      throw new KernelLimitError(`${request.name}: the emulated device has all its kernels.`);
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

/**
 * A CudaDevice whose memory is the host's and whose kernels run on the CPU, by a stand-in for libcuda. Work is queued,
 * and runs in an order drawn from `seed` among those that streams, events, warps and blocks allow; new and freed
 * memory holds NaN. A kernel that reads a misaligned address fails as on a GPU. `onLaunch` is called inside every
 * launch, with what it puts on the GPU: one kernel, a graph's nodes, or nothing yet while a stream is captured. cublasLt is
 * JavaScript's, and so are float32 products unless others are given. Each kernel takes the host's compiler a second, once
 * a machine; one that is needed beyond `mostKernels` throws a KernelLimitError.
 */
export function openEmulatedDevice(
  memoryBytes = 2 ** 30,
  onLaunch: (activities: number) => void = () => {},
  makeFloat32Product?: DeviceParts['makeFloat32Product'],
  seed = 1,
  mostKernels = Infinity,
): CudaDevice {
  const emulated = new EmulatedDriver(memoryBytes, onLaunch, seed);
  const driver = new CudaDriver(emulated.functions, (result) => emulated.describe(result));
  return new CudaDevice(driver, 0, {
    makeBuilder: (architecture) => builderFor(architecture, mostKernels),
    makeFloat32Product:
      makeFloat32Product ??
      ((_context, _driver, _scratch, streams) =>
        new EmulatedMatmul((run) => emulated.queues.push(streams.current.handle, run))),
    loadCublasLt: () =>
      new CublasLt(new EmulatedCublasLt((stream, run) => emulated.queues.push(stream, run)).functions),
    poisonsFreedMemory: true,
  });
}
