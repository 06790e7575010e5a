import { DeviceError, wrongArgument } from '@roofline/cuda/host';
import { CudaDevice } from './device.ts';
import { CudaLowering } from './lower.ts';
import type { Device } from '../../tensor/device.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';

/**
 * A device as a GPU, or the GPU of the context that an op's CUDA lowering gets: its streams, pools, pinned memory and tensor
 * maps. Throws a DeviceError for the CPU.
 */
export function cudaDevice(of: Device | CudaContext): CudaDevice {
  if (of instanceof CudaDevice) return of;
  if (of instanceof CudaLowering) return of.device as CudaDevice;
  if (typeof of !== 'object' || of === null)
    throw wrongArgument('cudaDevice', 'what it is of', 'a device or a context', of);
  const label = 'label' in of ? String(of.label) : 'this context';
  throw new DeviceError(`cudaDevice: ${label} is no GPU; take device('cuda').`);
}
