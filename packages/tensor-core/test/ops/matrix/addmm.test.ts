import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { describeAddmm } from '../../op-cases/matrix/addmm.ts';

describe('on the CPU', () => describeAddmm(() => device('cpu')));
describe.skipIf(hostCompilerVersion() === null)('on the emulated GPU', () => {
  const gpu = openEmulatedDevice();
  describeAddmm(() => gpu);
});
