import { device } from '@roofline/tensor-core';
import { hostCompilerVersion, openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe } from 'vitest';
import { describeLifetimes } from './lifetime-cases.ts';
import { describeUpdates } from './update-cases.ts';

describe('on the CPU', () => {
  describeUpdates(device('cpu'));
  describeLifetimes(device('cpu'));
});

describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', { timeout: 300_000 }, () => {
  const emulated = openEmulatedDevice();
  describeUpdates(emulated);
  describeLifetimes(emulated);
});
