import type { CudaDevice, CudaStream } from '@roofline/tensor-core/native';

const idle = new WeakMap<CudaDevice, CudaStream[]>();

/** A stream for a group; streams live as long as the process, so those of groups that are gone are used again. */
export function borrowStream(device: CudaDevice): CudaStream {
  return idle.get(device)?.pop() ?? device.createStream({ priority: 'communication' });
}

export function giveBackStream(device: CudaDevice, stream: CudaStream): void {
  idle.set(device, [...(idle.get(device) ?? []), stream]);
}
