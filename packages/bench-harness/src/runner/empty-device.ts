import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';

/** What kernels keep from launch to launch, as counters and partial sums; see `Gpu.scratch`. */
const KEPT_BYTES = 64 * 2 ** 20;

/** What of a GPU this asks; a device of tensor-core is one. */
interface EmptiedDevice {
  readonly allocatedBytes: number;
  memoryStatistics(): { readonly liveStorages: number };
  emptyCache(): void;
  resetPeakMemory(): void;
}

/**
 * Gives the memory that a cell has used back to the system, and says whether the next cell finds the GPU as a new process
 * would: without storages that something still holds. Always true of the CPU.
 */
export async function leavesDeviceEmpty(label: string): Promise<boolean> {
  if (!label.startsWith('cuda')) return true;
  // The cell's task has loaded it.
  const { device } = await import('@roofline/tensor-core');
  await turnOfTheEventLoop();
  return isEmptied(device(label as `cuda:${number}`));
}

/** The same of an open device. */
export function isEmptied(device: EmptiedDevice): boolean {
  device.emptyCache();
  device.resetPeakMemory();
  return device.memoryStatistics().liveStorages === 0 && device.allocatedBytes <= KEPT_BYTES;
}
