import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe } from 'vitest';
import { fuzzSettings } from '../../tensor-core/test/compile/fuzz-settings.ts';
import { itCompilesRandomSteps } from '../../tensor-core/test/compile/random-steps.ts';
import { trainers } from './random-steps-cases.ts';

describe.skipIf(!hostCompilerVersion())(
  'random steps with optimizers, on the emulated GPU (needs g++)',
  () => {
    itCompilesRandomSteps(openEmulatedDevice, fuzzSettings(1, 12), trainers);
  },
);
