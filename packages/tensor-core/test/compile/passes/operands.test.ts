import { describe, expect, it } from 'vitest';
import {
  areDisjoint,
  areIndependent,
  isSameOperand,
  leaveAsIs,
} from '../../../src/compile/passes/operands.ts';
import type { Call, Operand } from '../../../src/compile/graph/graph.ts';
import { type DType, byteSize } from '../../../src/base/dtype.ts';
import { contiguousStrides, isContiguous, sizeOf } from '../../../src/base/shape.ts';
import { RandomSource } from '../../differential/programs/random-source.ts';
import { areApart } from '../symbolic/symbolic-memory.ts';

function operand(
  shape: readonly number[],
  { offset = 0, strides = contiguousStrides(shape), storage = 0, dtype = 'float32' as DType } = {},
): Operand {
  const size = sizeOf(shape);
  const byteLength = size * byteSize(dtype);
  return {
    storage,
    shape,
    strides,
    offset,
    dtype,
    size,
    byteLength,
    isContiguous: isContiguous(shape, strides),
  };
}

describe('operands of a graph', () => {
  it('are the same where nothing differs', () => {
    const one = operand([2, 3], { offset: 4 });
    expect(isSameOperand(one, operand([2, 3], { offset: 4 }))).toBe(true);
    for (const other of [
      operand([2, 3], { offset: 4, storage: 1 }),
      operand([2, 3], { offset: 5 }),
      operand([2, 3], { offset: 4, dtype: 'int32' }),
      operand([3, 2], { offset: 4, strides: [3, 1] }),
      operand([2, 3], { offset: 4, strides: [1, 2] }),
    ])
      expect(isSameOperand(one, other)).toBe(false);
  });

  it('of other storages, other ranges and other columns are disjoint', () => {
    const columns = (start: number, count: number, pitch = 8) =>
      operand([4, count], { offset: start, strides: [pitch, 1] });
    const apart: [Operand, Operand][] = [
      [operand([4]), operand([4], { storage: 1 })],
      [operand([4]), operand([4], { offset: 4 })],
      [columns(0, 3), columns(3, 5)],
      [columns(0, 3), operand([4, 1, 5], { offset: 3, strides: [8, 5, 1] })],
      // Rows of a matrix, each a part of its columns; and heads of two adjacent matrices.
      [columns(2, 2), operand([2, 2], { offset: 12, strides: [8, 1] })],
      [operand([2, 4, 3], { strides: [3, 12, 1] }), operand([2, 4, 3], { offset: 6, strides: [3, 12, 1] })],
      // A repeated column.
      [operand([4, 2], { strides: [8, 0] }), columns(1, 7)],
    ];
    for (const [a, b] of apart) expect([areDisjoint(a, b), areDisjoint(b, a)]).toEqual([true, true]);
    const meeting: [Operand, Operand][] = [
      [operand([5]), operand([4], { offset: 4 })],
      [columns(0, 4), columns(3, 5)],
      [columns(0, 4), operand([32])],
      // Both share some bytes, though no elements.
      [columns(0, 3), operand([4, 2], { offset: 2, strides: [4, 1], dtype: 'float64' })],
      // From one row into the next.
      [operand([4, 9], { strides: [8, 1] }), operand([2], { offset: 16 })],
    ];
    for (const [a, b] of meeting) expect([areDisjoint(a, b), areDisjoint(b, a)]).toEqual([false, false]);
  });

  it('that are reported disjoint have no element in common', () => {
    const random = new RandomSource('operands', 1);
    const draw = () => {
      const rank = random.integer(1, 3);
      const shape = Array.from({ length: rank }, () => random.integer(1, 4));
      const strides = shape.map(() => random.pick([0, 1, 2, 3, 4, 6, 8, 12]));
      return operand(shape, { offset: random.integer(0, 12), strides });
    };
    let apart = 0;
    for (let i = 0; i < 20_000; i++) {
      const [a, b] = [draw(), draw()];
      if (!areDisjoint(a, b)) continue;
      apart++;
      expect([areApart(a, b), a, b]).toEqual([true, a, b]);
    }
    expect(apart).toBeGreaterThan(1000);
  });

  it('decide whether calls may be swapped', () => {
    const call = (inputs: Operand[], outputs: Operand[]) => ({ op: {}, inputs, outputs }) as unknown as Call;
    const [x, y, z] = [operand([4]), operand([4], { storage: 1 }), operand([4], { storage: 2 })];
    const [reads, writes] = [call([x], [y]), call([z], [x])];
    expect(areIndependent(reads, writes)).toBe(false);
    expect(areIndependent(writes, reads)).toBe(false);
    expect(areIndependent(call([x], [y]), call([z], [y]))).toBe(false);
    expect(areIndependent(call([x], [y]), call([x], [z]))).toBe(true);
    expect(leaveAsIs([reads, writes], [y])).toBe(false);
    expect(leaveAsIs([reads, writes], [z, operand([4], { offset: 4 })])).toBe(true);
  });
});
