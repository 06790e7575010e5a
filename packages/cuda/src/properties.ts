import type { CudaProperties } from './kernel.ts';
import { readFileSync } from 'node:fs';
import { type CudaDriver, driverVersion } from './driver/driver.ts';

// CUdevice_attribute, from cuda.h.
const attributes = {
  clockKhz: 13,
  multiprocessors: 16,
  memoryClockKhz: 36,
  memoryBusBits: 37,
  l2Bytes: 38,
  maxThreadsPerMultiprocessor: 39,
  computeCapabilityMajor: 75,
  computeCapabilityMinor: 76,
  sharedBytesPerMultiprocessor: 81,
  maxSharedBytesPerBlock: 97,
} as const;

type Attribute = keyof typeof attributes;

/** What the driver says of one GPU. */
export interface DeviceFacts extends CudaProperties {
  readonly name: string;
  readonly uuid: string;
  /** As `0000:18:00.0`. */
  readonly pciBusId: string;
  readonly totalBytes: number;
  readonly driverVersion: number;
  readonly maxThreadsPerMultiprocessor: number;
  readonly clockKhz: number;
  readonly memoryClockKhz: number;
  readonly memoryBusBits: number;
}

/** Asks the driver about a device; `handle` is its CUdevice. */
export function readFacts(driver: CudaDriver, handle: number): DeviceFacts {
  const { functions, result } = driver;
  const attribute = (name: Attribute) =>
    driver.intFrom('cuDeviceGetAttribute', (out) =>
      functions.cuDeviceGetAttribute(out, attributes[name], handle),
    );
  driver.check(functions.cuDeviceGetName(result.address, 256, handle), 'cuDeviceGetName');
  const name = textUpToZero(result.bytes.subarray(0, 256));
  driver.check(functions.cuDeviceGetUuid(result.address, handle), 'cuDeviceGetUuid');
  const uuid = formatUuid(result.bytes.subarray(0, 16));
  driver.check(functions.cuDeviceGetPCIBusId(result.address, 256, handle), 'cuDeviceGetPCIBusId');
  const pciBusId = textUpToZero(result.bytes.subarray(0, 256));
  return {
    name,
    uuid,
    pciBusId,
    totalBytes: driver.handleFrom('cuDeviceTotalMem', (out) => functions.cuDeviceTotalMem(out, handle)),
    driverVersion: driverVersion(driver),
    computeCapability: attribute('computeCapabilityMajor') * 10 + attribute('computeCapabilityMinor'),
    multiprocessors: attribute('multiprocessors'),
    l2Bytes: attribute('l2Bytes'),
    maxSharedBytesPerBlock: attribute('maxSharedBytesPerBlock'),
    maxThreadsPerMultiprocessor: attribute('maxThreadsPerMultiprocessor'),
    clockKhz: attribute('clockKhz'),
    memoryClockKhz: attribute('memoryClockKhz'),
    memoryBusBits: attribute('memoryBusBits'),
  };
}

/** The same by the device's index. */
export function factsOf(driver: CudaDriver, index: number): DeviceFacts {
  return readFacts(
    driver,
    driver.intFrom('cuDeviceGet', (out) => driver.functions.cuDeviceGet(out, index)),
  );
}

/** The facts as records keep them, units in the names. */
export function describeFacts(facts: DeviceFacts): Record<string, string | number> {
  return {
    name: facts.name,
    uuid: facts.uuid,
    pciBusId: facts.pciBusId,
    computeCapability: formatTenths(facts.computeCapability),
    multiprocessors: facts.multiprocessors,
    memoryMiB: Math.round(facts.totalBytes / 2 ** 20),
    l2MiB: facts.l2Bytes / 2 ** 20,
    maxSharedKiBPerBlock: facts.maxSharedBytesPerBlock / 1024,
    maxClockMHz: facts.clockKhz / 1000,
    memoryClockMHz: facts.memoryClockKhz / 1000,
    memoryBusBits: facts.memoryBusBits,
    driverCuda: formatCudaVersion(facts.driverVersion),
    ...kernelModuleVersion(),
  };
}

/** The version of NVIDIA's kernel module, such as 580.95.05, where the system shows it. */
function kernelModuleVersion(): { driver?: string } {
  try {
    return { driver: readFileSync('/sys/module/nvidia/version', 'utf8').trim() };
  } catch {
    return {};
  }
}

/** 13000 as `13.0`. */
export function formatCudaVersion(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}

/** 90 as `9.0`. */
export function formatTenths(value: number): string {
  return `${Math.floor(value / 10)}.${value % 10}`;
}

function textUpToZero(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, bytes.indexOf(0))).toString('utf8');
}

function formatUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return `GPU-${[hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')}`;
}
