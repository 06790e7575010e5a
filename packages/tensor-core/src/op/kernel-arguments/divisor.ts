/**
 * Division of 0 <= x < 2^31 by a number that a kernel gets as an argument, without a division (Granlund &
 * Montgomery 1994): x / d = (high 32 bits of x · multiplier + x) >> shift.
 */
export function shiftOf(divisor: number): number {
  return divisor === 1 ? 0 : 32 - Math.clz32(divisor - 1);
}

/** floor(2^32 · (2^shift - d) / d) + 1, by halves of 16 bits to stay exact in a double. */
export function multiplierOf(divisor: number): number {
  const remainder = 2 ** shiftOf(divisor) - divisor;
  const high = Math.floor((remainder * 65536) / divisor);
  const low = Math.floor(((remainder * 65536 - high * divisor) * 65536) / divisor);
  return high * 65536 + low + 1;
}
