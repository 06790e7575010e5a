import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe } from 'vitest';
import { describeClippedUpdates } from './clipped-updates-cases.ts';

describe.skipIf(!hostCompilerVersion())('clipped updates, on the emulated GPU (needs g++)', () =>
  describeClippedUpdates(openEmulatedDevice(), 8),
);
