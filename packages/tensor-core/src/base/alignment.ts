/** Whether `address` is a multiple of `bytes`, a power of two. By bits: a remainder of such large numbers is slow. */
export function isAligned(address: number, bytes: number): boolean {
  return (address & (bytes - 1)) === 0;
}
