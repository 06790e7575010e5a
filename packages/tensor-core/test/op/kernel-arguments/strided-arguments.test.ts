import { describe, expect, it } from 'vitest';
import {
  isNarrow,
  layoutBytes,
  stridedVectorLength,
} from '../../../src/op/kernel-arguments/strided-arguments.ts';
import {
  StridedLayout,
  type StridedOperand,
  collapse,
} from '../../../src/op/kernel-arguments/strided-layout.ts';
import type { DType } from '../../../src/base/dtype.ts';

function layoutOf(shape: readonly number[], operands: readonly StridedOperand[]): StridedLayout {
  const layout = new StridedLayout();
  collapse(layout, shape, operands);
  return layout;
}

describe('stridedVectorLength', () => {
  const shape = [3, 8];
  const dense = { shape, strides: [9 + 7, 1] };

  /** One input and one output, both float32 unless given. */
  const length = (
    input: StridedOperand,
    output: StridedOperand = { shape, strides: [8, 1] },
    { addresses = [0, 0], dtypes = ['float32', 'float32'] }: { addresses?: number[]; dtypes?: DType[] } = {},
  ) =>
    stridedVectorLength(
      layoutOf(output.shape, [input, output]),
      dtypes.map((dtype) => ({ dtype })),
      Float64Array.from(addresses),
      1,
      16,
    );

  it('is 16 bytes of the widest dtype', () => {
    expect(length(dense)).toBe(4);
    expect(length(dense, undefined, { dtypes: ['float16', 'float16'] })).toBe(8);
    expect(length(dense, undefined, { dtypes: ['float16', 'float64'] })).toBe(2);
  });

  it('divides the innermost length', () => {
    const of = (n: number) =>
      length({ shape: [3, n], strides: [64, 1] }, { shape: [3, n], strides: [32, 1] });
    expect([8, 6, 5, 4, 2].map(of)).toEqual([4, 2, 1, 4, 2]);
  });

  it.each([0, 1])('is what the address of operand %i is a multiple of', (operand) => {
    const at = (address: number) =>
      length(dense, undefined, { addresses: operand === 0 ? [address, 0] : [0, address] });
    expect([16, 8, 4, 12, 32].map(at)).toEqual([4, 2, 1, 1, 4]);
  });

  it('divides the strides of the other dimensions', () => {
    const of = (stride: number) => length({ shape, strides: [stride, 1] });
    expect([12, 10, 9, 16].map(of)).toEqual([4, 2, 1, 4]);
    expect(length(dense, { shape, strides: [10, 1] })).toBe(2);
  });

  it('goes on where an input repeats, and ends where an output or a step does', () => {
    expect(length({ shape: [3, 1], strides: [1, 1] })).toBe(4);
    expect(length({ shape, strides: [16, 2] })).toBe(1);
    expect(length({ shape, strides: [1, 3] })).toBe(1);
    expect(length(dense, { shape, strides: [1, 0] })).toBe(1);
  });
});

describe('isNarrow', () => {
  it('asks whether 31 bits hold each index and offset', () => {
    const narrow = (shape: number[], strides: number[]) => isNarrow(layoutOf(shape, [{ shape, strides }]));
    expect(narrow([2 ** 31 - 1], [1])).toBe(true);
    expect(narrow([2 ** 31], [1])).toBe(false);
    expect(narrow([2, 2], [2 ** 31 - 2, 1])).toBe(false);
    expect(narrow([2, 2], [2 ** 31 - 3, 1])).toBe(true);
    expect(narrow([2 ** 16, 2 ** 16], [0, 1])).toBe(false);
    expect(narrow([2, 3], [2 ** 31, 1])).toBe(false);
  });
});

describe('layoutBytes', () => {
  it('counts the words of the structure', () => {
    expect(layoutBytes(2, 3, false)).toBe(4 * (1 + 3 * 2 + 6));
    expect(layoutBytes(2, 3, true)).toBe(8 * (1 + 2 + 6));
  });
});
