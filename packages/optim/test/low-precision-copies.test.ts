import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe } from 'vitest';
import { describeLowPrecisionCopies } from './low-precision-copies-cases.ts';

describe.skipIf(!hostCompilerVersion())('casts of parameters, on the emulated GPU (needs g++)', () =>
  describeLowPrecisionCopies(openEmulatedDevice()),
);
