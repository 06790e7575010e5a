import { RooflineError } from '@roofline/tensor-core';
import { HostMemory, declareFunctions } from '@roofline/cuda/host';
import { libraries, loadLibrary } from '@roofline/cuda';

const prototypes = {
  cuDeviceGet: 'int cuDeviceGet(uintptr_t device, int ordinal)',
  cuDevicePrimaryCtxRetain: 'int cuDevicePrimaryCtxRetain(uintptr_t context, int device)',
  cuCtxSetCurrent: 'int cuCtxSetCurrent(uintptr_t context)',
  cuEventQuery: 'int cuEventQuery(uintptr_t event)',
} as const;

/** Whether everything before a CUevent has run. */
export type EventQuery = (event: number) => boolean;

/** For another thread than the one that uses the GPU; the driver must be initialized in this process. */
export function eventQuery(deviceIndex: number): EventQuery {
  const { handle, path } = loadLibrary(libraries.cuda);
  const missing = (name: string) =>
    new RooflineError('NCCL', `${path} has no ${name}: update NVIDIA's driver.`);
  const functions = declareFunctions(handle, prototypes, missing);
  const out = new HostMemory(8);
  functions.cuDeviceGet(out.address, deviceIndex);
  functions.cuDevicePrimaryCtxRetain(out.address, out.readInt32(0));
  const context = out.readUint64(0);
  return (event) => functions.cuCtxSetCurrent(context) === 0 && functions.cuEventQuery(event) === 0;
}
