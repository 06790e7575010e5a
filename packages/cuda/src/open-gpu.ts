import { checkCount } from './base/check-value.ts';
import { DeviceError } from './base/errors.ts';
import { gpuCount, loadDriver } from './driver/driver.ts';
import { makeGpuParts } from './gpu-parts.ts';
import { Gpu } from './gpu.ts';

const opened = new Map<number, Gpu>();

/**
 * The GPU of that index, opened at first use; the same object every time. Throws a LibraryNotFoundError without
 * NVIDIA's driver, a DeviceError without such a GPU or for one before Ampere, a RooflineError (code RANGE) for what is no
 * index.
 */
export function openGpu(index = 0): Gpu {
  checkCount('openGpu', 'the index', index);
  let gpu = opened.get(index);
  if (!gpu) {
    const driver = loadDriver();
    const count = gpuCount();
    if (index >= count) {
      throw new DeviceError(
        `There is no cuda:${index}: the driver shows ${count} GPU${count === 1 ? '' : 's'}.`,
      );
    }
    opened.set(index, (gpu = new Gpu(makeGpuParts(driver, index))));
  }
  return gpu;
}
