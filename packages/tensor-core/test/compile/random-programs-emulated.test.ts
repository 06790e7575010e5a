import { describe } from 'vitest';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { fuzzSettings } from './fuzz-settings.ts';
import { itCompilesRandomPrograms } from './random-programs.ts';
import { itCompilesRandomSteps } from './random-steps.ts';

describe.skipIf(hostCompilerVersion() === null)('random programs on an emulated GPU', () => {
  const device = openEmulatedDevice();
  itCompilesRandomPrograms(() => device, fuzzSettings(13, 40));
  itCompilesRandomSteps(() => device, fuzzSettings(5120, 20));
});
