import { describe, expect, it } from 'vitest';
import { StridedLayout, collapse, maxRank } from '../../../src/op/kernel-arguments/strided-layout.ts';
import { contiguousStrides } from '../../../src/base/shape.ts';

function collapsed(shape: number[], ...operands: { shape: number[]; strides?: number[] }[]) {
  const layout = new StridedLayout();
  collapse(
    layout,
    shape,
    operands.map(({ shape: own, strides }) => ({ shape: own, strides: strides ?? contiguousStrides(own) })),
  );
  const { rank } = layout;
  return {
    lengths: Array.from(layout.lengths.slice(0, rank)),
    strides: operands.map((_, o) => Array.from({ length: rank }, (_, d) => layout.strideAt(o, d))),
    layout,
  };
}

describe('collapse', () => {
  it('merges dense operands into one dimension', () => {
    const { lengths, strides } = collapsed([2, 3, 4], { shape: [2, 3, 4] }, { shape: [2, 3, 4] });
    expect(lengths).toEqual([24]);
    expect(strides).toEqual([[1], [1]]);
  });

  it('keeps a transposition of the outer dimensions apart from the dense inner one', () => {
    const [b, t, h, d] = [2, 5, 3, 8];
    const permuted = { shape: [b, h, t, d], strides: [t * h * d, d, h * d, 1] };
    const { lengths, strides } = collapsed([b, h, t, d], permuted, { shape: [b, h, t, d] });
    expect(lengths).toEqual([d, t, h, b]);
    expect(strides).toEqual([
      [1, h * d, d, t * h * d],
      [1, d, t * d, h * t * d],
    ]);
  });

  it('repeats missing and single dimensions by stride 0', () => {
    const { lengths, strides } = collapsed(
      [4, 6, 8],
      { shape: [8] },
      { shape: [4, 1, 1] },
      { shape: [4, 6, 8] },
    );
    expect(lengths).toEqual([8, 6, 4]);
    expect(strides).toEqual([
      [1, 0, 0],
      [0, 0, 1],
      [1, 8, 48],
    ]);
  });

  it('merges dimensions over which an operand repeats', () => {
    const { lengths, strides } = collapsed([4, 6, 8], { shape: [8] }, { shape: [4, 6, 8] });
    expect(lengths).toEqual([8, 24]);
    expect(strides).toEqual([
      [1, 0],
      [1, 8],
    ]);
  });

  it('gives a single element one dimension', () => {
    expect(collapsed([1, 1], { shape: [] }, { shape: [1, 1] })).toMatchObject({
      lengths: [1],
      strides: [[0], [0]],
    });
  });

  it('knows how far an operand reaches', () => {
    const { layout } = collapsed([4, 5], { shape: [4, 5], strides: [100, 3] });
    expect(layout.extentOf(0)).toBe(3 * 100 + 4 * 3 + 1);
    expect(layout.size).toBe(20);
  });

  it('refuses more dimensions than kernels walk', () => {
    const shape = Array.from({ length: maxRank + 1 }, () => 2);
    const strides = shape.map((_, i) => 3 ** (maxRank - i));
    expect(() => collapsed(shape, { shape, strides }, { shape })).toThrow(/more than 16 dimensions/);
  });
});
