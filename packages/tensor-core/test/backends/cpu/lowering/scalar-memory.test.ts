import { describe, expect, it } from 'vitest';
import { ScalarMemory } from '../../../../src/backends/cpu/lowering/scalar-memory.ts';
import { ffi } from '@roofline/cuda/host';
import type { DType } from '../../../../src/base/dtype.ts';

/** Eight bytes as a graph reads them. */
const slot = (memory: ScalarMemory, index: number) => new DataView(ffi().view(memory.addressOf(index), 8));

function written(dtype: DType, values: readonly number[], count = values.length): DataView[] {
  const memory = new ScalarMemory(dtype, count);
  memory.write(values);
  return Array.from({ length: count }, (_, i) => slot(memory, i));
}

describe('ScalarMemory', () => {
  it('holds each scalar in eight consecutive bytes of its own', () => {
    const memory = new ScalarMemory('float32', 3);
    const first = memory.addressOf(0);
    expect([1, 2].map((i) => memory.addressOf(i) - first)).toEqual([8, 16]);
    expect(first % 8).toBe(0);
  });

  it('writes floating-point numbers', () => {
    expect(written('float32', [0.1, -Infinity, 3]).map((view) => view.getFloat32(0, true))).toEqual([
      Math.fround(0.1),
      -Infinity,
      3,
    ]);
    expect(written('float64', [0.1, -Infinity, 3]).map((view) => view.getFloat64(0, true))).toEqual([
      0.1,
      -Infinity,
      3,
    ]);
  });

  it('writes integers, with their sign, and int32 in four bytes', () => {
    const values = [-1, 7, -(2 ** 40), 2 ** 52 + 1];
    expect(written('int64', values).map((view) => Number(view.getBigInt64(0, true)))).toEqual(values);
    expect(written('int32', [-1, 7, 2 ** 31 - 1]).map((view) => view.getInt32(0, true))).toEqual([
      -1,
      7,
      2 ** 31 - 1,
    ]);
    expect(written('int32', [-1, -2]).map((view) => view.getInt32(4, true))).toEqual([0, 0]);
  });

  it('writes bools as 0 and 1', () => {
    const views = written('bool', [0, 1, 0.5, NaN, -0]);
    expect(views.map((view) => Number(view.getBigUint64(0, true)))).toEqual([0, 1, 1, 1, 0]);
  });

  it.each(['float32', 'float64', 'int64', 'int32', 'bool'] as const)(
    'leaves scalars of %s as they are that were not given anew',
    (dtype) => {
      const memory = new ScalarMemory(dtype, 2);
      memory.write([1, 1]);
      const before = slot(memory, 1).getBigUint64(0, true);
      memory.write([0]);
      expect(Number(slot(memory, 0).getBigUint64(0, true))).toBe(0);
      expect(before).not.toBe(0n);
      expect(slot(memory, 1).getBigUint64(0, true)).toBe(before);
    },
  );
});
