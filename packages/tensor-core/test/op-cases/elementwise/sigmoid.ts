import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { tensorOf, unitRoundoff } from '../support/samples.ts';
import type { OpenDevice } from '../support/vector-jacobian.ts';

/** σ(x), without cancellation on either side. */
const sigmoid = (x: number) => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));

/** sigmoid and silu far from 0, where the small values must keep their digits, on one device. */
export function describeSigmoid(open: OpenDevice): void {
  describe.each([
    { name: 'sigmoid', fn: t.sigmoid, reference: sigmoid, atMinusInfinity: 0 },
    // -∞ / ∞, as torch.nn.functional.silu.
    { name: 'silu', fn: t.silu, reference: (x: number) => x * sigmoid(x), atMinusInfinity: NaN },
  ])('$name', ({ name, fn, reference, atMinusInfinity }) => {
    // Down to where e^-x overflows.
    it.each([
      { dtype: 'float32', lowest: -87 },
      { dtype: 'float64', lowest: -700 },
    ] as const)('is right to a few roundings of each value in $dtype', ({ dtype, lowest }) => {
      t.scope(() => {
        const x = tensorOf(
          Array.from({ length: 2001 }, (_, i) => lowest + (i * (40 - lowest)) / 2000),
          [2001],
          dtype,
          open(),
        );
        const y = fn(x).toFlatArray();
        x.toFlatArray().forEach((value, i) => {
          const expected = reference(value);
          const error = Math.abs(y[i]! - expected);
          expect(error).toBeLessThanOrEqual(4 * unitRoundoff[dtype]! * Math.abs(expected));
        });
      });
    });

    // Subnormal numbers keep what is above half of the smallest one; where e^-x overflows silu is 0.
    it.each([
      { dtype: 'float32', smallest: 2 ** -149, from: -87, to: -105 },
      { dtype: 'float64', smallest: 2 ** -1074, from: -708, to: -746 },
      { dtype: 'bfloat16', smallest: 2 ** -133, from: -87, to: -94 },
      { dtype: 'float16', smallest: 2 ** -24, from: -9, to: -18 },
    ] as const)('keeps subnormal values in $dtype', ({ dtype, smallest, from, to }) => {
      t.scope(() => {
        const x = tensorOf(
          Array.from({ length: 101 }, (_, i) => from + (i * (to - from)) / 100),
          [101],
          dtype,
          open(),
        );
        const y = fn(x).toFlatArray();
        const overflow = dtype === 'float64' ? -709.78 : -88.72;
        let kept = 0;
        x.toFlatArray().forEach((value, i) => {
          if (name === 'silu' && value < overflow) return expect(Math.abs(y[i]!)).toBe(0);
          const expected = reference(value);
          const bound = 4 * unitRoundoff[dtype]! * Math.abs(expected) + smallest;
          expect(Math.abs(y[i]! - expected)).toBeLessThanOrEqual(bound);
          if (y[i] !== 0) kept++;
        });
        expect(kept).toBeGreaterThan(name === 'sigmoid' ? 80 : 3);
      });
    });

    it('ends at 0, 1 or x', () => {
      t.scope(() => {
        const x = tensorOf([-1000, 1000, Infinity, NaN, -Infinity], [5], 'float32', open());
        const y = fn(x).toFlatArray();
        expect(Math.abs(y[0]!)).toBe(0);
        expect(y.slice(1)).toEqual([reference(1000), reference(Infinity), NaN, atMinusInfinity]);
      });
    });
  });
}
