import { type DType, byteSize } from '../../base/dtype.ts';
import { fromNumbers, toNumbers } from '../host-values.ts';

/** `value` as a floating-point dtype holds it. */
export function roundedTo(dtype: DType, value: number): number {
  return toNumbers(dtype, fromNumbers(dtype, [value]))[0]!;
}

/** The largest value of a floating-point dtype below `limit`. */
export function largestBelow(dtype: DType, limit: number): number {
  const elements = fromNumbers(dtype, [limit]);
  const rounded = toNumbers(dtype, elements)[0]!;
  if (rounded < limit) return rounded;
  // Bits of sign and magnitude, whose order is that of the magnitudes.
  const memory = new DataView(elements.buffer);
  const bits = 8 * byteSize(dtype);
  if (rounded === 0) {
    memory.setUint8(bits / 8 - 1, 0x80);
    memory.setUint8(0, 1);
  } else if (bits === 64) memory.setBigInt64(0, memory.getBigInt64(0, true) + (rounded > 0 ? -1n : 1n), true);
  else if (bits === 32) memory.setInt32(0, memory.getInt32(0, true) + (rounded > 0 ? -1 : 1), true);
  else memory.setInt16(0, memory.getInt16(0, true) + (rounded > 0 ? -1 : 1), true);
  return toNumbers(dtype, elements)[0]!;
}

/** The largest value of a floating-point dtype that is not above `limit`. */
export function largestUpTo(dtype: DType, limit: number): number {
  return roundedTo(dtype, limit) === limit ? limit : largestBelow(dtype, limit);
}
