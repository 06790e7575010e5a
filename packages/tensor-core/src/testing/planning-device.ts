import { emulatedCublasLt, openPlanningGpu } from '@roofline/cuda/testing';
import { CudaDevice } from '../backends/cuda/device.ts';

/**
 * A CudaDevice that only counts its memory: an H200 whose addresses lead nowhere, and whose kernels, products and copies do
 * nothing. How much memory the steps of large models take is so known in a second. Nothing can be read from it.
 */
export function openPlanningDevice(): CudaDevice {
  const gpu = openPlanningGpu();
  return new CudaDevice(gpu.parts, {
    makeFloat32Product: () => null,
    loadCublasLt: () => emulatedCublasLt(gpu),
  });
}
