import { readSlowdowns, slowdownsBetween } from './cpu-slowdowns.ts';
import type { DeviceDescription } from './environment.ts';
import type { Throttling } from './throttling.ts';

/**
 * Begins to watch the clocks of a device and of the CPU next to it; the function that it returns ends that and says what
 * held them down. Of several GPUs at work the device is the first.
 */
export async function watchThrottling({ properties }: DeviceDescription): Promise<() => Throttling> {
  const { pciBusId } = properties;
  const gpu = typeof pciBusId === 'string' ? await watchGpu(pciBusId) : () => null;
  const before = readSlowdowns();
  return () => {
    const after = readSlowdowns();
    return { gpu: gpu(), cpuSlowdowns: before && after && slowdownsBetween(before, after) };
  };
}

/** What reads them is loaded only where there is a GPU. */
async function watchGpu(pciBusId: string) {
  const { watchGpuClocks } = await import('./gpu-clocks.ts');
  return watchGpuClocks(pciBusId);
}
