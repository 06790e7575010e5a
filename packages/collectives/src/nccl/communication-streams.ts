import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import type { CudaStream } from '@roofline/cuda';

const idle = new WeakMap<CudaDevice, CudaStream[]>();

/** A stream for a group; streams live as long as the process, so those of groups that are gone are used again. */
export function borrowStream(device: CudaDevice): CudaStream {
  return idle.get(device)?.pop() ?? device.createStream({ priority: 'communication' });
}

export function giveBackStream(device: CudaDevice, stream: CudaStream): void {
  idle.set(device, [...(idle.get(device) ?? []), stream]);
}
