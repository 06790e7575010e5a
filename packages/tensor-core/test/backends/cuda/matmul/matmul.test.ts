import { describe } from 'vitest';
import { describeMatmul } from '../../../op-cases/generic.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

const emulated = openEmulatedDevice();

// What the product itself is does not matter here: how operands are seen, copied and batched does.
describe.skipIf(!hostCompilerVersion())('matmul, emulated', () => describeMatmul(() => emulated));
