import { DTypeError } from './errors.ts';
import { describeValue } from './check-value.ts';
import type { DType } from './dtype.ts';

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The 16 bits of `value` as float16 or bfloat16, rounded to nearest, ties to even. Throws a DTypeError for others. */
export function toBits16(dtype: DType, value: number): number {
  if (typeof value !== 'number') throw notBits('toBits16', dtype, value);
  if (dtype === 'float16') return toFloat16(value);
  if (dtype === 'bfloat16') return toBfloat16(value);
  throw notBits('toBits16', dtype, value);
}

/** The value of 16 bits that hold a float16 or bfloat16. Throws a DTypeError for others. */
export function fromBits16(dtype: DType, bits16: number): number {
  // What is no integer of 16 bits is not itself after the mask.
  if (typeof bits16 !== 'number' || (bits16 & 0xffff) !== bits16) throw notBits('fromBits16', dtype, bits16);
  if (dtype === 'float16') return fromFloat16(bits16);
  if (dtype === 'bfloat16') return fromBfloat16(bits16);
  throw notBits('fromBits16', dtype, bits16);
}

function notBits(owner: string, dtype: unknown, value: unknown): DTypeError {
  return new DTypeError(
    `${owner}: takes float16 or bfloat16 and a number, not ${describeValue(dtype)} and ${describeValue(value)}.`,
  );
}

function toBfloat16(value: number): number {
  float[0] = value;
  const x = bits[0]!;
  if (Number.isNaN(value)) return (x >>> 16) | 0x40;
  return (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
}

function fromBfloat16(bits16: number): number {
  bits[0] = bits16 << 16;
  return float[0]!;
}

function toFloat16(value: number): number {
  float[0] = value;
  const x = bits[0]!;
  const sign = (x >>> 16) & 0x8000;
  const magnitude = Math.abs(float[0]!);
  if (Number.isNaN(value)) return sign | 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) return sign | roundHalfToEven(magnitude * 2 ** 24);
  const exponent = ((x >>> 23) & 0xff) - 127;
  const mantissa = roundHalfToEven((magnitude / 2 ** exponent - 1) * 1024);
  return sign | (((exponent + 15) << 10) + mantissa);
}

function fromFloat16(bits16: number): number {
  const sign = bits16 & 0x8000 ? -1 : 1;
  const magnitude = bits16 & 0x7fff;
  if (magnitude >= 0x7c00) return magnitude > 0x7c00 ? NaN : sign * Infinity;
  // As a float32, whose exponents lie 112 higher; so do those of its subnormal numbers.
  bits[0] = magnitude << 13;
  return sign * float[0]! * 2 ** 112;
}

function roundHalfToEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
