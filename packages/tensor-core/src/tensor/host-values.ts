import { type DType, type TypedArray, checkElement, typedArray } from '../base/dtype.ts';
import { fromBits16, toBits16 } from '../base/float16.ts';

/** The elements of a typed array as JavaScript numbers. */
export function toNumbers(dtype: DType, data: TypedArray): number[] {
  const numbers: number[] = [];
  // Array.from would take three times as long.
  if (data instanceof Uint16Array) for (const bits of data) numbers.push(fromBits16(dtype, bits));
  else for (let i = 0; i < data.length; i++) numbers.push(Number(data[i]));
  return numbers;
}

/**
 * Numbers as the typed array of a dtype. For floating-point dtypes they are rounded as hardware does, to infinity beyond the
 * range; a bool is true unless the number is 0. Throws a DTypeError, which names `owner`, for values that are not numbers and
 * for numbers that an integer dtype cannot hold.
 */
export function fromNumbers(dtype: DType, values: readonly number[], owner = 'tensor'): TypedArray {
  return fromFunction(dtype, values.length, (i) => values[i]!, owner);
}

/** The same for `length` numbers that `valueAt` returns one by one: a list of them might fill JavaScript's heap. */
export function fromFunction(
  dtype: DType,
  length: number,
  valueAt: (index: number) => number,
  owner: string,
): TypedArray {
  const data = typedArray(dtype, length);
  for (let i = 0; i < length; i++) {
    const value = valueAt(i);
    checkElement(owner, dtype, value);
    if (data instanceof BigInt64Array) data[i] = BigInt(value);
    else if (data instanceof Uint16Array) data[i] = toBits16(dtype, value);
    else data[i] = dtype === 'bool' ? Number(value !== 0) : value;
  }
  return data;
}

/** The bytes of a typed array, not copied. */
export function bytesOfArray(data: TypedArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
