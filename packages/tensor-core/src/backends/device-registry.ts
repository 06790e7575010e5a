import { DeviceError, describeValue } from '@roofline/cuda/host';
import { openCpuDevice } from './cpu/device.ts';
import { cudaAvailable, openCudaDevice } from './cuda/open-device.ts';
import type { Device } from '../tensor/device.ts';

/** How users name a device: `cuda` is `cuda:0`, and `auto` the first GPU if one works, else the CPU. */
export type DeviceSpec = 'cpu' | 'cuda' | `cuda:${number}` | 'auto';

/** The device of that name; the same object every time. Throws a DeviceError that says what is missing. */
export function device(spec: DeviceSpec | Device): Device {
  return deviceOf('device', spec);
}

/** The same for a function `owner` that was given the name. */
export function deviceOf(owner: string, spec: DeviceSpec | Device): Device {
  if (isDevice(spec)) return spec;
  if (typeof spec !== 'string') throw noSuchDevice(owner, describeValue(spec));
  if (spec === 'auto') return cudaAvailable() ? openCudaDevice(0) : openCpuDevice();
  if (spec === 'cpu') return openCpuDevice();
  const [, index] = /^cuda(?::(\d+))?$/.exec(spec) ?? [];
  if (!spec.startsWith('cuda') || (spec !== 'cuda' && index === undefined)) {
    throw noSuchDevice(owner, `"${spec}"`);
  }
  return openCudaDevice(Number(index ?? 0));
}

/** Throws a DeviceError, which names `owner`, unless `spec` is a device, or the name of one that is here. */
export function checkDevice(owner: string, spec: DeviceSpec | Device): void {
  deviceOf(owner, spec);
}

function isDevice(spec: unknown): spec is Device {
  return typeof spec === 'object' && spec !== null && 'allocate' in spec && 'run' in spec;
}

function noSuchDevice(owner: string, given: string): DeviceError {
  return new DeviceError(`${owner}: there is no device ${given}; take cpu, cuda, cuda:N or auto.`);
}
