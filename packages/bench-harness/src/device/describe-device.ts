import { device } from '@roofline/tensor-core';
import type { DeviceDescription } from '../records/environment.ts';

/** Opens a device in this process. Throws a RooflineError where it cannot be used. */
export function describeDevice(spec: string): DeviceDescription {
  const opened = device(spec as `cuda:${number}`);
  // The name is enough; the uuid identifies a machine, which records should not.
  const { name: _, uuid: __, ...properties } = opened.properties();
  return { label: opened.label, type: opened.type, name: opened.name, properties };
}
