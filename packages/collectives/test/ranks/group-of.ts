import { type Device, device } from '@roofline/tensor-core';
import { type InitProcessGroupOptions, type ProcessGroup, initProcessGroup } from '@roofline/collectives';
import { type StubNccl, openEmulatedGpu } from '../support/emulated-gpu.ts';

/** What a script's ranks work on: `gloo` on the CPU, NCCL's stand-in on an `emulated` GPU, or NCCL on `real` ones. */
export const place = process.argv[2] as 'gloo' | 'emulated' | 'real';

/** The group of all ranks on that, its device, and the stand-in where there is one. */
export async function groupOf(
  options: Partial<InitProcessGroupOptions> = {},
): Promise<{ group: ProcessGroup; device: Device; nccl: StubNccl | null }> {
  if (place === 'gloo') {
    const group = await initProcessGroup({ backend: 'gloo', ...options });
    return { group, device: device('cpu'), nccl: null };
  }
  const emulated = place === 'emulated' ? openEmulatedGpu(Number(process.env['RANK']) + 7) : null;
  const group = await initProcessGroup({
    backend: 'nccl',
    // Kernels of the emulated GPU may first have to be compiled, which takes a busy machine a while.
    timeoutMs: 300_000,
    ...(emulated && { device: emulated.device }),
    ...options,
  });
  return { group, device: group.device!, nccl: emulated?.nccl ?? null };
}
