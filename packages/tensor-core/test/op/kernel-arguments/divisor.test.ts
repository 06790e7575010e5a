import fc from 'fast-check';
import { expect, it } from 'vitest';
import { multiplierOf, shiftOf } from '../../../src/op/kernel-arguments/divisor.ts';

/** What the kernels do with 32-bit registers. */
function divide(x: number, multiplier: number, shift: number): number {
  const high = Number((BigInt(x) * BigInt(multiplier)) >> 32n);
  return ((high + x) / 2 ** shift) >> 0;
}

it('divides every number below 2^31 by every divisor', () => {
  const below = fc.integer({ min: 0, max: 2 ** 31 - 1 });
  const divisor = fc.integer({ min: 1, max: 2 ** 31 - 1 });
  fc.assert(
    fc.property(below, divisor, (x, d) => {
      const multiplier = multiplierOf(d);
      expect(multiplier).toBeLessThanOrEqual(2 ** 32);
      for (const value of [x, Math.min(x, d), Math.max(0, d - 1), Math.floor(x / d) * d]) {
        expect(divide(value, multiplier, shiftOf(d))).toBe(Math.floor(value / d));
      }
    }),
    { numRuns: 2000 },
  );
});

it('divides by powers of two and their neighbours', () => {
  for (let power = 0; power < 31; power++) {
    for (const d of [2 ** power - 1, 2 ** power, 2 ** power + 1].filter((value) => value > 0)) {
      expect(multiplierOf(d)).toBeLessThan(2 ** 32);
      for (const x of [0, 1, d - 1, d, d + 1, 2 ** 31 - 1]) {
        expect(divide(x, multiplierOf(d), shiftOf(d))).toBe(Math.floor(x / d));
      }
    }
  }
});
