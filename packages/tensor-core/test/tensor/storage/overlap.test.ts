import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { shareElements } from '../../../src/tensor/storage/overlap.ts';
import { describeOnDevices } from '../../op-cases/support/devices.ts';

const layout = (shape: number[], strides: number[], offset: number): t.Layout => ({ shape, strides, offset });

function elementsOf({ shape, strides, offset }: t.Layout): Set<number> {
  let positions = [offset];
  shape.forEach((length, i) => {
    const steps = Array.from({ length }, (_, index) => index * strides[i]!);
    positions = positions.flatMap((position) => steps.map((step) => position + step));
  });
  return new Set(positions);
}

const layouts = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 9 })), { maxLength: 3 })
  .chain((dims) =>
    fc.integer({ min: 0, max: 30 }).map((offset) =>
      layout(
        dims.map(([length]) => length),
        dims.map(([, stride]) => stride),
        offset,
      ),
    ),
  );

describe('two layouts share elements', () => {
  it('where a walk over both meets one', () => {
    fc.assert(
      fc.property(layouts, layouts, (a, b) => {
        const meet = !elementsOf(a).isDisjointFrom(elementsOf(b));
        expect(shareElements(a, b)).toBe(meet ? 'yes' : 'no');
      }),
      { numRuns: 2000 },
    );
  });

  it('or not, however large they are', () => {
    const columns = (from: number) => layout([1e6, 3], [8, 1], from);
    expect(shareElements(columns(0), columns(3))).toBe('no');
    expect(shareElements(columns(0), columns(2))).toBe('yes');
    expect(shareElements(layout([1e9], [2], 0), layout([1e9], [2], 1))).toBe('no');
    const [heads, others] = [0, 64].map((from) => layout([8, 512, 12, 64], [512 * 1536, 1536, 128, 1], from));
    expect(shareElements(heads!, others!)).toBe('no');
  });

  it('or not, whatever the order and the divisors of their strides', () => {
    const one = (at: number) => layout([1], [1], at);
    // 1.5e7 is between the rows, which end at 2e7; the search must take the long stride first.
    const rows = layout([1e6, 3], [1, 1e7], 0);
    expect(shareElements(rows, one(1.5e7))).toBe('no');
    expect(shareElements(rows, one(1e7 + 999_999))).toBe('yes');
    expect(shareElements(layout([1e6, 1e6], [4, 6], 0), one(1_000_001))).toBe('no');
  });

  it('or cannot be decided in bounded time', () => {
    // Sums of many lengths that differ by a few in a thousand, a knapsack: 30000 is none of them.
    const strides = Array.from({ length: 14 }, (_, i) => 2 * (1000 + 3 * i));
    const knapsack = layout([...strides.map(() => 4), 2], [...strides, 1], 0);
    expect(shareElements(knapsack, layout([1], [1], 1999))).toBe('no');
    expect(shareElements(knapsack, layout([1], [1], 30_001))).toBe('too hard');
  });
});

describeOnDevices((open) => {
  it('in-place writes take a source in other columns of the same rows', () => {
    t.scope(() => {
      const x = t.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], { device: open() }); // prettier-ignore
      const [left, right] = [t.slice(x, 1, 0, 2), t.slice(x, 1, 2, 4)];
      t.addInPlace(left, right);
      expect(x.toArray()).toEqual([[4, 6, 3, 4], [12, 14, 7, 8], [20, 22, 11, 12]]); // prettier-ignore
      t.copyInPlace(t.slice(x, 1, 0, 4, 2), t.slice(x, 1, 1, 4, 2));
      expect(x.toArray()).toEqual([[6, 6, 4, 4], [14, 14, 8, 8], [22, 22, 12, 12]]); // prettier-ignore
    });
  });

  it('in-place writes refuse a source that shares a single element', () => {
    t.scope(() => {
      const x = t.arange(0, 12, 1, { device: open(), dtype: 'float32' });
      const table = t.view(x, [3, 4]);
      expect(() => t.addInPlace(t.slice(table, 1, 0, 2), t.slice(table, 1, 1, 3))).toThrow(t.ShapeError);
      const square = t.slice(table, 1, 0, 3);
      expect(() => t.copyInPlace(square, t.transpose(square))).toThrow('shares memory with the target');
    });
  });
});
