import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../../src/testing.ts';
import { describeAddmm } from '../../op-cases/matrix/addmm.ts';

describe('on the CPU', () => describeAddmm(() => device('cpu')));
describe.skipIf(hostCompilerVersion() === null)('on the emulated GPU', () => {
  const gpu = openEmulatedDevice();
  describeAddmm(() => gpu);
});
