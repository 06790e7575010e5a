import { afterEach, describe, expect, it, vi } from 'vitest';
import * as t from '../../../src/index.ts';
import { type IndexRange, checkIndices } from '../../../src/ops/support/check-indices.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

// The setting that test/backends/cuda/ops/check-indices.test.ts turns on is off here.
vi.hoisted(() => vi.stubEnv('ROOFLINE_CHECK_INDICES', '0'));
afterEach(() => vi.stubEnv('ROOFLINE_CHECK_INDICES', '0'));

const range: IndexRange = { op: 'pick', role: 'index', length: 3, within: 'a list of 3' };
const check = (values: readonly number[], device: t.Device | 'cpu', onCpu: boolean) => () =>
  checkIndices(t.tensor(values, { dtype: 'int64', device }), range, { onCpu });

describe('checkIndices', () => {
  it('reads indices on the CPU where the op does not', () => {
    expect(check([0, 3], 'cpu', true)).toThrow('pick: index 3 at position 1 is outside a list of 3.');
    expect(check([0, 2], 'cpu', true)).not.toThrow();
    expect(check([0, 3], 'cpu', false)).not.toThrow();
  });

  it.skipIf(!hostCompilerVersion())(
    'reads none on a GPU unless the environment asked for it at first',
    () => {
      const device = openEmulatedDevice();
      for (const onCpu of [true, false]) expect(check([0, 3], device, onCpu)).not.toThrow();
      vi.stubEnv('ROOFLINE_CHECK_INDICES', '1');
      expect(check([0, 3], device, false)).not.toThrow();
    },
  );
});
