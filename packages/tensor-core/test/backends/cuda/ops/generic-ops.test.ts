import { describe } from 'vitest';
import { describeElementwise, describeMatmul } from '../../../op-cases/generic.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

// Only in float32, because each kernel takes the host's compiler a second, once per machine; a GPU runs all dtypes.
describe.skipIf(!hostCompilerVersion())('on the emulated GPU', () => {
  const emulated = openEmulatedDevice();
  const open = () => emulated;

  describe('element-wise ops', () => {
    describeElementwise(open, { float64: false, lowDTypes: [], brief: true });
  });
  describe('matmul', () => {
    describeMatmul(open);
  });
});
