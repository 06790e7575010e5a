import { describeValue, fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '@roofline/cuda/host';
import { DTypeError } from './errors.ts';
import type { DType } from './dtype.ts';

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
