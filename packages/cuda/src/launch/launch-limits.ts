import { DeviceError } from '../base/errors.ts';

// What every GPU takes; from the CUDA programming guide's table of technical specifications.
const maxGridX = 2 ** 31 - 1;
const maxGridYZ = 65_535;
const maxBlockSize = 1024;

/** Dynamic shared memory that a kernel may use without announcing it. */
export const sharedBytesWithoutAsking = 48 * 1024;

/** The dynamic shared memory that launches of a kernel may ask for, given what its spec announces. */
export function maxDynamicSharedBytes(announced: number): number {
  return Math.max(announced, sharedBytesWithoutAsking);
}

/** Throws a DeviceError unless `x · y · z` blocks of `blockSize` threads can be launched. */
export function checkGrid(kernel: string, x: number, y: number, z: number, blockSize: number): void {
  if (!(isWithin(x, maxGridX) && isWithin(y, maxGridYZ) && isWithin(z, maxGridYZ))) {
    throw new DeviceError(
      `Kernel ${kernel}: a grid of [${x}, ${y}, ${z}] blocks cannot be launched; each is a whole number from 1, up to ` +
        `[${maxGridX}, ${maxGridYZ}, ${maxGridYZ}].`,
    );
  }
  if (!isWithin(blockSize, maxBlockSize)) {
    throw new DeviceError(
      `Kernel ${kernel}: blocks have 1 to ${maxBlockSize} threads, not ${blockSize}; use more blocks.`,
    );
  }
}

/** Throws a DeviceError unless a launch may ask for so many bytes of dynamic shared memory. */
export function checkSharedBytes(kernel: string, bytes: number, most: number): void {
  if (bytes === bytes >>> 0 && bytes <= most) return;
  throw new DeviceError(
    `Kernel ${kernel}: a launch asks for ${bytes} bytes of dynamic shared memory, but ${most} are announced; set ` +
      'dynamicSharedBytes of its KernelSpec.',
  );
}

// Holds for no fraction and not for NaN.
function isWithin(value: number, most: number): boolean {
  return value >= 1 && value <= most && value === (value | 0);
}

const holds: Readonly<Record<string, string>> = {
  p: 'an address, a whole number from 0 below 2^53',
  i: 'an int32, a whole number from -2147483648 to 2147483647',
  u: 'a uint32, a whole number from 0 to 4294967295',
  l: 'an int64, a whole number between -2^53 and 2^53',
  f: 'a float32, a number',
  d: 'a float64, a number',
  T: 'a structure, its bytes as a Uint8Array',
};

/** The error for an argument that its parameter cannot hold. */
export function argumentError(
  kernel: string,
  parameters: string,
  index: number,
  value: unknown,
): DeviceError {
  const shown = value instanceof Uint8Array ? `a structure of ${value.length} bytes` : String(value);
  return new DeviceError(
    `Kernel ${kernel}: parameter ${index} of "${parameters}" is ${holds[parameters[index]!]}; it cannot hold ${shown}.`,
  );
}
