import type { HostArray } from '../../op/cpu-lowering.ts';
import type { TypedArray } from '../../base/dtype.ts';
import { fromBits16, toBits16 } from '../../base/float16.ts';

/** Elements that JavaScript can calculate with: anything but the raw bits of low precision. */
export type NumberArray = Exclude<TypedArray, Uint16Array>;

/** The elements of an array as numbers: itself, or low precision as float32. */
export function numbersOf({ data, dtype }: HostArray): NumberArray {
  if (!(data instanceof Uint16Array)) return data;
  return Float32Array.from(data, (bits) => fromBits16(dtype, bits));
}

/** Writes numbers, rounded to the array's dtype. */
export function storeNumbers({ data, dtype }: HostArray, numbers: Float32Array | Float64Array): void {
  if (data instanceof Uint16Array) numbers.forEach((value, i) => (data[i] = toBits16(dtype, value)));
  else data.set(numbers as never);
}
