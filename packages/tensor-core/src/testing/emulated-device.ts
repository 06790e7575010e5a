import { emulatedCublasLt, openEmulatedGpu } from '@roofline/cuda/testing';
import type { DeviceParts } from '../backends/cuda/device-parts.ts';
import { CudaDevice } from '../backends/cuda/device.ts';
import { EmulatedMatmul } from './emulated-matmul.ts';

/**
 * A CudaDevice on a GPU that the CPU plays; `openEmulatedGpu` of `@roofline/cuda/testing` says how, and what `memoryBytes`,
 * `onLaunch`, `seed` and `mostKernels` are. cublasLt is JavaScript's, and so are float32 products unless others are given.
 */
export function openEmulatedDevice(
  memoryBytes = 2 ** 30,
  onLaunch: (activities: number) => void = () => {},
  makeFloat32Product?: DeviceParts['makeFloat32Product'],
  seed = 1,
  mostKernels = Infinity,
): CudaDevice {
  const gpu = openEmulatedGpu({ memoryBytes, onLaunch, seed, mostKernels });
  return new CudaDevice(gpu.parts, {
    makeFloat32Product:
      makeFloat32Product ??
      ((_context, _driver, _scratch, streams) =>
        new EmulatedMatmul((run) => gpu.queue(streams.current.handle, run))),
    loadCublasLt: () => emulatedCublasLt(gpu),
  });
}
