import { DeviceError, RooflineError } from '../../base/errors.ts';
import { architectureOf } from '../../cuda/architecture.ts';
import { loadNvrtc } from '../../cuda/nvrtc/nvrtc.ts';
import { CudaDevice } from './device.ts';
import { countDevices, loadDriver } from '../../cuda/driver/driver.ts';
import { libraries, loadLibrary } from '../../cuda/driver/library-search.ts';
import { startNvtx } from './nvtx.ts';
import { factsOf } from '../../cuda/properties.ts';

const opened = new Map<number, CudaDevice>();

/**
 * The GPU of that index, opened at first use; the same object every time. Throws a LibraryNotFoundError without
 * NVIDIA's driver, a DeviceError without such a GPU.
 */
export function openCudaDevice(index = 0): CudaDevice {
  let device = opened.get(index);
  if (!device) {
    const driver = loadDriver();
    const count = countDevices();
    if (index >= count) {
      throw new DeviceError(
        `There is no cuda:${index}: the driver shows ${count} GPU${count === 1 ? '' : 's'}.`,
      );
    }
    startNvtx();
    device = new CudaDevice(driver, index);
    opened.set(index, device);
  }
  return device;
}

/** The GPUs that this process has opened. */
export function openedCudaDevices(): readonly CudaDevice[] {
  return [...opened.values()];
}

/** How many GPUs can be opened. Never throws. */
export function cudaDeviceCount(): number {
  return countDevices();
}

let available: boolean | null = null;

/**
 * Whether `cuda:0` can run ops: a GPU of compute capability 8.0 or newer, with an NVRTC that supports it, cublasLt and the
 * driver. `diagnose` says what is missing. Never throws.
 */
export function cudaAvailable(): boolean {
  available ??= countDevices() > 0 && canRunOps(0);
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
