import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldedShape, planReduction } from '../../../../src/backends/cuda/generated/reduction-plan.ts';

describe('foldedShape', () => {
  it.each([
    [[4, 5, 6], [2], { outer: 20, length: 6, inner: 1 }],
    [[4, 5, 6], [0], { outer: 1, length: 4, inner: 30 }],
    [[4, 5, 6], [1], { outer: 4, length: 5, inner: 6 }],
    [[4, 5, 6], [0, 1], { outer: 1, length: 20, inner: 6 }],
    [[4, 5, 6], [0, 1, 2], { outer: 1, length: 120, inner: 1 }],
    [[4, 1, 6], [1], { outer: 1, length: 1, inner: 24 }],
    [[4, 1, 6], [0, 2], { outer: 1, length: 24, inner: 1 }],
    [[], [], { outer: 1, length: 1, inner: 1 }],
    [[3, 0], [1], { outer: 3, length: 0, inner: 1 }],
    [[4, 5, 6], [0, 2], null],
  ])('of %j along %j', (shape, dims, expected) => {
    expect(foldedShape(shape, dims)).toEqual(expected);
  });
});

describe('planReduction', () => {
  it('lets a warp take a short row and a block a long one', () => {
    expect(planReduction({ outer: 1024, length: 256, inner: 1 }, 4, 132)).toMatchObject({
      width: 32,
      chunks: 1,
      blocks: 128,
    });
    expect(planReduction({ outer: 1024, length: 10_000, inner: 1 }, 4, 132)).toMatchObject({
      width: 256,
      chunks: 1,
      blocks: 1024,
    });
  });

  it('cuts what would leave the GPU idle', () => {
    const whole = planReduction({ outer: 1, length: 2 ** 28, inner: 1 }, 4, 132);
    expect(whole.chunks).toBeGreaterThanOrEqual(132);
    const columns = planReduction({ outer: 1, length: 4096, inner: 2560 }, 4, 132);
    expect(columns.blocks).toBeGreaterThanOrEqual(132);
    expect(planReduction({ outer: 1, length: 4096, inner: 2560 }, 4, 0).chunks).toBe(1);
  });

  it('cuts rows into pieces of whole vectors, and columns anywhere', () => {
    // 8 chunks of 12,503 elements would not be whole vectors of 4 or 8.
    const folded = { outer: 1, length: 100_024, inner: 1 };
    expect(planReduction(folded, 4, 2)).toMatchObject({ vectorLength: 4, chunk: 12_504, chunks: 8 });
    expect(planReduction(folded, 8, 2)).toMatchObject({ vectorLength: 8, chunk: 12_504, chunks: 8 });
    const columns = { outer: 1, length: 1001, inner: 4 };
    expect(planReduction(columns, 4, 2)).toMatchObject({ vectorLength: 1, chunk: 126, chunks: 8 });
  });

  it('covers every element once, in whole vectors', () => {
    const length = fc.integer({ min: 1, max: 100_000 });
    const small = fc.integer({ min: 1, max: 300 });
    fc.assert(
      fc.property(small, length, small, fc.constantFrom(1, 2, 4, 8), (outer, length, inner, widest) => {
        const pass = planReduction({ outer, length, inner }, widest, 132);
        expect((pass.kind === 'rows' ? length : inner) % pass.vectorLength).toBe(0);
        expect(pass.chunk * pass.chunks).toBeGreaterThanOrEqual(length);
        expect(pass.chunk * (pass.chunks - 1)).toBeLessThan(length);
        if (pass.kind === 'rows') {
          expect(pass.chunks === 1 || pass.chunk % pass.vectorLength === 0).toBe(true);
          expect(pass.blocks * (256 / pass.width)).toBeGreaterThanOrEqual(outer * pass.chunks);
        } else {
          expect(pass.blocks * 32 * pass.vectorLength).toBeGreaterThanOrEqual(outer * pass.chunks * inner);
        }
      }),
    );
  });
});
