import { type DType, type TypedArray, typedArray } from './dtype.ts';
import { fromBits16, toBits16 } from './float16.ts';

/** The elements of a typed array as JavaScript numbers. */
export function toNumbers(dtype: DType, data: TypedArray): number[] {
  if (dtype === 'float16' || dtype === 'bfloat16') {
    return Array.from(data as Uint16Array, (bits) => fromBits16(dtype, bits));
  }
  return Array.from<number | bigint, number>(data as Float64Array, Number);
}

/** Numbers as the typed array of a dtype, rounded as its hardware rounds. */
export function fromNumbers(dtype: DType, values: readonly number[]): TypedArray {
  const data = typedArray(dtype, values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (data instanceof BigInt64Array) data[i] = BigInt(Math.trunc(value));
    else if (data instanceof Uint16Array) data[i] = toBits16(dtype, value);
    else data[i] = dtype === 'bool' ? Number(value !== 0) : value;
  }
  return data;
}

/** The bytes of a typed array, not copied. */
export function bytesOfArray(data: TypedArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
