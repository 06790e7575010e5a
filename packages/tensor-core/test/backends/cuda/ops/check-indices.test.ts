import { describe, expect, it, vi } from 'vitest';
import * as t from '../../../../src/index.ts';
import { checkIndices } from '../../../../src/ops/support/check-indices.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

vi.hoisted(() => (process.env.ROOFLINE_CHECK_INDICES = '1'));

describe.skipIf(!hostCompilerVersion())('ROOFLINE_CHECK_INDICES=1 on the emulated GPU', () => {
  const device = openEmulatedDevice();
  const ids = (values: readonly number[], dtype: 'int32' | 'int64' = 'int64') =>
    t.tensor(values, { dtype, device });
  const expectShapeError = (fn: () => void, message: string) =>
    t.scope(() => {
      expect(fn).toThrow(t.ShapeError);
      expect(fn).toThrow(message);
    });

  it.each(['int32', 'int64'] as const)('names the op, the position and the value of %s', (dtype) => {
    expectShapeError(
      () => t.embedding(t.ones([4, 2], { device }), ids([3, 0, 4], dtype)),
      'embedding: id 4 at position 2 is outside a table of 4 rows.',
    );
    expectShapeError(
      () => t.gather(t.ones([3, 2], { device }), 0, t.reshape(ids([0, -1], dtype), [1, 2])),
      'gather: index -1 at position 1 is outside a dimension of length 3.',
    );
    expectShapeError(
      () => t.indexCopyInPlace(t.ones([3, 2], { device }), 0, ids([2, 3], dtype), t.ones([2, 2], { device })),
      'indexCopyInPlace: index 3 at position 1 is outside a dimension of length 3.',
    );
    expectShapeError(
      () => t.crossEntropy(t.ones([2, 3], { device }), ids([-100, 3], dtype)),
      'crossEntropy: target 3 at position 1 is outside the 3 classes 0..2 (and is not the ignored -100).',
    );
  });

  it('lets pass what is in range, and reads views', () => {
    t.scope(() => {
      const weight = t.ones([4, 2], { device });
      const every = t.slice(ids([3, 9, 0, 9]), 0, 0, 4, 2);
      expect(t.embedding(weight, every).toFlatArray()).toEqual([1, 1, 1, 1]);
      expect(t.crossEntropy(weight, ids([0, 1, -7, 0]), { ignoreIndex: -7 }).item()).toBeCloseTo(Math.LN2, 6);
      expect(t.gather(weight, 0, t.reshape(ids([3, 0]), [1, 2])).toFlatArray()).toEqual([1, 1]);
    });
    expectShapeError(
      () => t.embedding(t.ones([4, 2], { device }), t.slice(ids([3, 0, 9, 0]), 0, 0, 4, 2)),
      'id 9 at position 1',
    );
  });

  it('reads those on the CPU as it would without', () => {
    const range = { op: 'pick', role: 'index', length: 3, within: 'a list of 3' } as const;
    const check = (device: t.Device | 'cpu', onCpu: boolean) => () =>
      checkIndices(t.tensor([3], { dtype: 'int64', device }), range, { onCpu });
    expect(check(device, false)).toThrow('pick: index 3 at position 0');
    expect(check('cpu', true)).toThrow('pick: index 3 at position 0');
    expect(check('cpu', false)).not.toThrow();
  });

  it('names wrong dtypes and shapes first', () => {
    const weight = t.ones([4, 2], { device });
    expect(() => t.embedding(weight, weight)).toThrow('ids must be int32 or int64');
    expect(() => t.crossEntropy(weight, weight)).toThrow('targets must be int32 or int64');
    expect(() => t.gather(weight, 0, weight)).toThrow('index must be int32 or int64');
    expect(() => t.embedding(t.ones([4], { device }), ids([9]))).toThrow('weight must be');
  });
});
