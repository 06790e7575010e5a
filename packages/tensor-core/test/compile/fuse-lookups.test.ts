import { describe } from 'vitest';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { describeLookups } from './fuse-lookups-cases.ts';

describe.skipIf(hostCompilerVersion() === null)('rows of a table before norms', () => {
  const device = openEmulatedDevice();
  describeLookups(() => device);
});
