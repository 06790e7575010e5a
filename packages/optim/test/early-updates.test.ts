import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe } from 'vitest';
import { describeEarlyUpdates } from './early-updates-cases.ts';

describe.skipIf(!hostCompilerVersion())('early updates, on the emulated GPU (needs g++)', () =>
  describeEarlyUpdates(openEmulatedDevice(), 8),
);
