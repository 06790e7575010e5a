import { DeviceError, describeValue } from '@roofline/tensor-core';

/**
 * Which kernels flashAttention takes on a GPU: `simt` those for every GPU; `hopper` Hopper's own (tensor cores, TMA)
 * wherever they cover the problem, and those for every GPU elsewhere.
 */
export type FlashKernels = 'simt' | 'hopper';

const known: readonly string[] = ['simt', 'hopper'] satisfies FlashKernels[];

let chosen: FlashKernels | null = null;

/** Chooses for all calls from now on. The default is ROOFLINE_FLASH_KERNELS, or `simt`. Throws a DeviceError. */
export function setFlashKernels(kernels: FlashKernels): void {
  chosen = checked('setFlashKernels', kernels);
}

export function getFlashKernels(): FlashKernels {
  chosen ??= checked('ROOFLINE_FLASH_KERNELS', process.env.ROOFLINE_FLASH_KERNELS ?? 'simt');
  return chosen;
}

function checked(source: string, kernels: string): FlashKernels {
  if (!known.includes(kernels)) {
    throw new DeviceError(
      `${source}: there are no kernels ${describeValue(kernels)}; take ${known.join(' or ')}.`,
    );
  }
  return kernels as FlashKernels;
}
