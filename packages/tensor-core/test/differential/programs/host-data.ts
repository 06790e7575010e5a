import { type DType, type TypedArray, fromBits16, toBits16 } from '../../../src/index.ts';

const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
};

/** The elements of `dtype` that bytes hold, in memory of their own. */
export function fromBytes(dtype: DType, bytes: Uint8Array): TypedArray {
  return new arrays[dtype](new Uint8Array(bytes).buffer);
}

export function bytesOf(data: TypedArray): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Values as elements of `dtype`, rounded; floating-point dtypes take numbers, integers numbers or bigints. */
export function encode(dtype: DType, values: readonly (number | bigint)[]): TypedArray {
  if (dtype === 'int64') return BigInt64Array.from(values, (value) => BigInt(value));
  const numbers = values.map(Number);
  if (dtype === 'float16' || dtype === 'bfloat16') {
    return Uint16Array.from(numbers, (value) => toBits16(dtype, value));
  }
  return new (arrays[dtype] as typeof Float64Array)(numbers) as TypedArray;
}

/** Elements as numbers; int64 beyond 2^53 loses its last digits. */
export function decode(dtype: DType, data: TypedArray): Float64Array {
  if (dtype === 'float16' || dtype === 'bfloat16') {
    return Float64Array.from(data as Uint16Array, (bits) => fromBits16(dtype, bits));
  }
  return Float64Array.from<number | bigint>(data as Float64Array, Number);
}

/** Elements as text, for reports. */
export function format(dtype: DType, data: TypedArray): string {
  const text =
    data instanceof BigInt64Array ? Array.from(data, String) : Array.from(decode(dtype, data), show);
  return `[${text.slice(0, 24).join(', ')}${text.length > 24 ? `, … ${text.length} in all` : ''}]`;
}

function show(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}
