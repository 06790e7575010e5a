import { describe } from 'vitest';
import { describeMatmul } from '../../../op-cases/generic.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

const emulated = openEmulatedDevice();

// The product itself does not matter here, only how operands are viewed, copied and batched.
describe.skipIf(!hostCompilerVersion())('matmul, emulated', () => describeMatmul(() => emulated));
