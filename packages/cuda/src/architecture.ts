import { DeviceError } from './base/errors.ts';
import { formatTenths } from './properties.ts';

/** Of the GPUs that Roofline runs on, the least compute capability, ten times. */
export const oldestCapability = 80;

/**
 * The architecture that kernels are compiled for. Hopper and Blackwell's data-centre GPUs have instructions
 * (wgmma, tcgen05) that only the `a` targets allow. Throws a DeviceError for GPUs before Ampere.
 */
export function architectureOf(computeCapability: number): string {
  if (computeCapability < oldestCapability) {
    throw new DeviceError(
      `This GPU has compute capability ${formatTenths(computeCapability)}; ` +
        `${formatTenths(oldestCapability)} (Ampere) or newer is needed. For tensors there is the device 'cpu'.`,
    );
  }
  const specific = computeCapability === 90 || computeCapability === 100;
  return `sm_${computeCapability}${specific ? 'a' : ''}`;
}
