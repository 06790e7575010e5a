import { CudaDriver, type DriverFunctions } from '../driver/driver.ts';
import { makeGpuParts } from '../gpu-parts.ts';
import { KernelBuilder } from '../nvrtc/compile.ts';
import { EmulatedDriver } from './emulated-driver.ts';
import { EmulatedGpu } from './emulated-gpu.ts';
import type { EmulatedQueues } from './emulated-queues.ts';
import { giveHandle, giveInt, readAt } from './out-parameters.ts';

/** An H200's, by their numbers; see `EmulatedDriver` for others. */
const attributes: Record<number, number> = {
  16: 132,
  38: 60 * 2 ** 20,
  75: 9,
  76: 0,
  81: 232_448,
  97: 232_448,
};

/** What it claims to have; it hands out more. */
const totalBytes = 141 * 10 ** 9;

/** Compiles nothing. */
class NoBuilder extends KernelBuilder {
  override buildFile(): Uint8Array {
    return new Uint8Array(1);
  }

  override buildText(): Uint8Array {
    return new Uint8Array(1);
  }
}

/**
 * A GPU that only counts its memory: an H200 whose addresses lead nowhere, and whose kernels and copies do nothing, nor do
 * functions that are queued. Nothing can be read from it.
 */
export function openPlanningGpu(): EmulatedGpu {
  const emulated = new EmulatedDriver(totalBytes, () => {}, 1);
  const { queues } = emulated;
  const functions = {
    ...emulated.functions,
    ...withoutMemory(emulated.functions, queues),
  } as DriverFunctions;
  const driver = new CudaDriver(functions, (result) => emulated.describe(result));
  const parts = makeGpuParts(driver, 0, {
    makeBuilder: (architecture) => new NoBuilder(architecture),
    poisonsFreedMemory: false,
  });
  return new EmulatedGpu(parts, (stream) => queues.push(stream, () => {}));
}

/** The calls of a driver that would touch memory or kernels; what is captured counts as nodes all the same. */
function withoutMemory(
  { cuDeviceGetAttribute }: DriverFunctions,
  queues: EmulatedQueues,
): Partial<Record<keyof DriverFunctions, (...values: never[]) => number>> {
  let nextAddress = 2 ** 30;
  const nothing = (stream: number) => {
    queues.push(stream, () => {});
    return 0;
  };
  return {
    cuDeviceGetAttribute: (out: number, attribute: number, device: number) =>
      attribute in attributes
        ? giveInt(out, attributes[attribute]!)
        : cuDeviceGetAttribute(out, attribute, device),
    cuMemAlloc(out: number, bytes: number) {
      const address = nextAddress;
      nextAddress += Math.ceil(bytes / 2 ** 21) * 2 ** 21;
      return giveHandle(out, address);
    },
    cuMemFree: () => 0,
    cuMemcpyAsync: (_to: number, _from: number, _bytes: number, stream: number) => nothing(stream),
    cuMemsetD8Async: (_to: number, _value: number, _bytes: number, stream: number) => nothing(stream),
    cuModuleLoadData: (out: number) => giveHandle(out, 1),
    cuModuleGetFunction: (out: number) => giveHandle(out, 1),
    cuLaunchKernel: (...values: number[]) => nothing(values[8]!),
    cuLaunchKernelEx: (config: number) => nothing(Number(readAt(config, 40).getBigUint64(32, true))),
    cuGraphExecKernelNodeSetParams: () => 0,
    cuTensorMapEncodeTiled: () => 0,
  };
}
