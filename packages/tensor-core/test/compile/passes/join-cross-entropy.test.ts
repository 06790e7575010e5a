import { describe } from 'vitest';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { describeJointCrossEntropy } from './join-cross-entropy-cases.ts';

describe.skipIf(hostCompilerVersion() === null)('a loss and the gradient of its logits in one', () => {
  const device = openEmulatedDevice();
  describeJointCrossEntropy(() => device);
});
