import { RooflineError } from '@roofline/cuda/host';
import { gpuCount, libraries, loadLibrary, openGpu } from '@roofline/cuda';
import { architectureOf, factsOf, loadDriver, loadNvrtc } from '@roofline/cuda/parts';
import { CudaDevice } from './device.ts';
import { startNvtx } from './nvtx.ts';

const opened = new Map<number, CudaDevice>();

/**
 * The GPU of that index, opened at first use; the same object every time. Throws a LibraryNotFoundError without
 * NVIDIA's driver, a DeviceError without such a GPU.
 */
export function openCudaDevice(index = 0): CudaDevice {
  let device = opened.get(index);
  if (!device) {
    const { parts } = openGpu(index);
    startNvtx();
    opened.set(index, (device = new CudaDevice(parts)));
  }
  return device;
}

/** The GPUs that this process has opened. */
export function openedCudaDevices(): readonly CudaDevice[] {
  return [...opened.values()];
}

/** How many GPUs can be opened. Never throws. */
export function cudaDeviceCount(): number {
  return gpuCount();
}

let available: boolean | null = null;

/**
 * Whether `cuda:0` can run ops: a GPU of compute capability 8.0 or newer, with an NVRTC that supports it, cublasLt and the
 * driver. `diagnose` says what is missing. Never throws.
 */
export function cudaAvailable(): boolean {
  available ??= gpuCount() > 0 && canRunOps(0);
  return available;
}

function canRunOps(index: number): boolean {
  try {
    const { computeCapability } = factsOf(loadDriver(), index);
    loadNvrtc().requireArchitecture(architectureOf(computeCapability));
    loadLibrary(libraries.cublasLt);
    return true;
  } catch (error) {
    if (error instanceof RooflineError) return false;
    throw error;
  }
}
