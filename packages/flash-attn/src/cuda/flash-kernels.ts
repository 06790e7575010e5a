import { DeviceError, dependOn, describeValue } from '@roofline/tensor-core';

/**
 * Which kernels flashAttention takes on a GPU: `auto` the fastest family that takes the problem; `mma` those on the tensor
 * cores of every GPU, and not Hopper's own (wgmma, TMA); `simt` those for every dtype, by ordinary multiply-adds, which
 * also take what no tensor core does, float64 above all. Forward and backward choose each for itself.
 */
export type FlashKernels = 'auto' | 'mma' | 'simt';

const known: readonly string[] = ['auto', 'mma', 'simt'] satisfies FlashKernels[];

let chosen: FlashKernels | null = null;

/** Chooses for all calls from now on. The default is ROOFLINE_FLASH_KERNELS, or `auto`. Throws a DeviceError. */
export function setFlashKernels(kernels: FlashKernels): void {
  chosen = checked('setFlashKernels', kernels);
}

/** The families that kernels are chosen among: see `setFlashKernels`. */
export function getFlashKernels(): FlashKernels {
  return dependOn(readChosen);
}

function readChosen(): FlashKernels {
  return (chosen ??= checked('ROOFLINE_FLASH_KERNELS', process.env.ROOFLINE_FLASH_KERNELS ?? 'auto'));
}

function checked(source: string, kernels: string): FlashKernels {
  if (!known.includes(kernels)) {
    throw new DeviceError(
      `${source}: there are no kernels ${describeValue(kernels)}; take ${known.slice(0, -1).join(', ')} or ${known.at(-1)}.`,
    );
  }
  return kernels as FlashKernels;
}
