import {
  type BeginBatch,
  type CompileRequest,
  CublasLt,
  CudaDriver,
  type DriverFunctions,
  KernelBuilder,
  type KernelCompiler,
  makeGpuParts,
} from '@roofline/cuda/parts';
import { ffi } from '@roofline/cuda/host';
import { CudaDevice } from '../../src/backends/cuda/device.ts';
import { EmulatedDriver } from '@roofline/cuda/testing';

/** CUDA_ERROR_NOT_FOUND. */
const notFound = 500;

function giveHandle(out: number, value: number): number {
  new BigUint64Array(ffi().view(out, 8))[0] = BigInt(value);
  return 0;
}

/** What it makes of a source is its text. */
class NoOpCompiler implements KernelCompiler {
  readonly version = 'no-op';

  compile({ source }: CompileRequest): Uint8Array {
    return Buffer.from(source);
  }
}

/** The names of the kernels whose source is part of an image. */
function kernelsIn(image: Uint8Array): string[] {
  const kernels = Buffer.from(image)
    .toString()
    .matchAll(/__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(/g);
  return Array.from(kernels, ([, name]) => name!);
}

/** The driver's functions except those of code: kernels are found by name, take their turn in a stream, and do nothing. */
function withoutCode({ functions, queues }: EmulatedDriver): DriverFunctions {
  const modules: string[][] = [];
  const launch = (stream: number) => {
    queues.push(stream, () => {});
    return 0;
  };
  const code: { [K in keyof DriverFunctions]?: (...arguments_: never[]) => number } = {
    cuModuleLoadData: (out: number, image: Uint8Array) => giveHandle(out, modules.push(kernelsIn(image)) - 1),
    cuModuleGetFunction: (out: number, module: number, name: string) =>
      modules[module]!.includes(name) ? giveHandle(out, 1) : notFound,
    cuLaunchKernel: (...[, , , , , , , , stream]: number[]) => launch(stream!),
    cuLaunchKernelEx: (config: number) =>
      launch(Number(new DataView(ffi().view(config, 40)).getBigUint64(32, true))),
  };
  return { ...functions, ...code } as DriverFunctions;
}

const keepsNothing = { read: () => undefined, write: () => false };

/**
 * A CudaDevice that allocates, launches and frees as a GPU does but whose kernels write nothing: for properties of an op that
 * do not depend on its values. The images of a compiler must hold the text of what they were compiled from.
 */
export function openNoOpDevice(
  beginBatch: BeginBatch | null = null,
  loadCompiler: () => KernelCompiler = () => new NoOpCompiler(),
): CudaDevice {
  const emulated = new EmulatedDriver(2 ** 30, () => {}, 1);
  const driver = new CudaDriver(withoutCode(emulated), (result) => emulated.describe(result));
  const parts = { loadCompiler, cache: keepsNothing, beginBatch };
  const gpu = makeGpuParts(driver, 0, {
    makeBuilder: (architecture) => new KernelBuilder(architecture, parts),
    poisonsFreedMemory: false,
  });
  return new CudaDevice(gpu, {
    makeFloat32Product: () => ({ tryRun: () => true }),
    loadCublasLt: () => new CublasLt(),
  });
}
