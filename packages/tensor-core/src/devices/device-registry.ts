import { openCpuDevice } from './cpu/device.ts';
import { cudaAvailable, openCudaDevice } from './cuda/device.ts';
import type { Device } from './device.ts';
import { DeviceError } from '../errors.ts';

/** How users name a device: `cuda` is `cuda:0`, and `auto` the first GPU if one works, else the CPU. */
export type DeviceSpec = 'cpu' | 'cuda' | `cuda:${number}` | 'auto';

/** The device of that name; the same object every time. Throws a DeviceError that says what is missing. */
export function device(spec: DeviceSpec | Device): Device {
  if (typeof spec !== 'string') return spec;
  if (spec === 'auto') return cudaAvailable() ? openCudaDevice(0) : openCpuDevice();
  if (spec === 'cpu') return openCpuDevice();
  const [, index] = /^cuda(?::(\d+))?$/.exec(spec) ?? [];
  if (!spec.startsWith('cuda') || (spec !== 'cuda' && index === undefined)) {
    throw new DeviceError(`There is no device "${spec}"; take cpu, cuda, cuda:N or auto.`);
  }
  return openCudaDevice(Number(index ?? 0));
}
